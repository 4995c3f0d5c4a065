"""The one import of pyopencl."""
import os
os.environ.setdefault("PYOPENCL_NO_CACHE", "1")
import pyopencl as cl
