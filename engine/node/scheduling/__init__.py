"""Services that find what is due or changed."""
