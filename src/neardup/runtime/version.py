"""The version, read by the build and by `neardup --version`."""

__version__ = "0.1.0"
