"""The walls: one module per isolation layer, to probe and to raise it. It must never know a runtime or a job."""
