"""Node.js in limited processes, for programs of ours that read tenants' data. It never executes code of a tenant."""
