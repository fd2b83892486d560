"""The oracle: slow, independent implementations that the tests compare ftlab with."""
