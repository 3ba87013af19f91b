"""The escape suite: attacks on the walls as data, and the code that runs and judges them. It must never be imported by a worker.

It ships with Lodger: operators test their own hosts with ``lodger escape``, and testers add attacks in ten lines (docs/escape-suite.md).
"""
