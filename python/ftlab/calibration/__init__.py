"""``ftlab calibrate``: the keys of a model, found from what a drive was measured to do."""
