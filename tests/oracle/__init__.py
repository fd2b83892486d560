"""The oracle: slow, independent implementations with which the tests compare ftlab."""
