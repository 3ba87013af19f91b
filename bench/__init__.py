"""Figures that promises rest on, measured on the host that asks. It must never be needed by anything that runs."""
