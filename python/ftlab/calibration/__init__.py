"""Models of real drives: what was measured on them, and the keys of a model found from it
(``ftlab calibrate``).
"""
