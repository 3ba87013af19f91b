"""Actions by request, repeats, retries, and queries on actions."""
