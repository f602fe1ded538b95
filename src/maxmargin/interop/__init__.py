"""How do we speak with others? Model files, and the words of LIBSVM and LIBLINEAR."""
