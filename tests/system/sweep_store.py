#!/usr/bin/python3
"""sweep_store.py - sweep.py, with books that cannot be written or synced instead of kills; every 13th write and sync
unless told otherwise"""
import os
import sys

os.environ["GPUB_SWEEP_STORE"] = "1"
os.environ.setdefault("GPUB_SWEEP_STRIDE", "13")
sweep = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sweep.py")
os.execv("/usr/bin/python3", ["/usr/bin/python3", sweep, *sys.argv[1:]])
