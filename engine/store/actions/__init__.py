"""Actions by request, backfills, retries, and queries on actions."""
