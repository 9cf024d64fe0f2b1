#!/usr/bin/python3
"""sweep_join.py - sweep.py, with a cluster that each machine joins; every fourth point unless told otherwise"""
import os
import sys

os.environ["GPUB_SWEEP_CLUSTER"] = "1"
os.environ.setdefault("GPUB_SWEEP_STRIDE", "4")
sweep = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sweep.py")
os.execv("/usr/bin/python3", ["/usr/bin/python3", sweep, *sys.argv[1:]])
