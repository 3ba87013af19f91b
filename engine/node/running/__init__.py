"""Services that claim, run and finish actions."""
