"""What is a training set once it is inside?"""
