"""The attacks on the walls, as data, and what runs and judges them. It must never be imported by a worker.

They ship with Lodger: an operator tests her own host with ``lodger escape``, a tester adds an attack in ten lines (docs/escape-suite.md).
"""
