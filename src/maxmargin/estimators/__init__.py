"""scikit-learn's words: the only room that knows its protocol.

Nothing is imported here, so that one estimator does not load what another one needs.
"""
