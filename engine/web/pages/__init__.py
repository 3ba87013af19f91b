"""The dashboard's pages: each reads operations with the caller's role and names the template that shows them."""
