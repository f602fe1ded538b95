"""Which parameters predict best what they have not seen?"""
