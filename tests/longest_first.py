"""Where a run of the whole suite begins."""

#: Files that take longest, in about that order. A process of pytest-xdist takes a whole file (``--dist loadfile``), in the order of
#: collection (``--no-loadscope-reorder``): a long one that began last would leave the other processes with nothing to do.
LONGEST_FIRST = (
    "chaos/test_cuts.py", "unit/data/test_isolation.py", "chaos/test_processes.py", "escape/test_suite_sees.py",
    "api/test_description.py", "e2e/test_streams.py", "unit/data/test_sql_is_python.py", "chaos/test_server.py",
    "escape/test_pool_chaos.py", "e2e/test_demo.py", "chaos/test_havoc.py", "chaos/test_recovery.py", "chaos/test_restarts.py",
    "escape/test_cases.py", "e2e/test_changes.py", "e2e/test_effects_killed.py", "limits/test_memory_peak.py", "e2e/test_service.py",
    "e2e/test_examples.py", "unit/runtime/test_artefact.py", "escape/test_owned_worker.py", "escape/test_every_syscall.py",
    "store/test_archives.py", "store/test_audit.py", "unit/data/test_hostile_questions.py", "store/test_seals.py",
    "store/test_bent_archives.py", "store/test_hostile_arguments.py", "node/test_wasm_node.py", "e2e/test_bench.py",
    "sim/test_planted_bugs.py", "escape/test_pool_life.py",
    "e2e/test_escape.py", "api/test_abuse.py", "api/test_client.py", "store/test_secrets.py", "store/test_day_budgets.py",
    "unit/capabilities/test_bulk.py", "store/test_wasm_scripts.py", "limits/test_rows.py", "api/test_requests.py",
    "api/test_sessions.py", "store/test_collections.py", "unit/data/test_large_rows.py", "escape/test_hostile_arguments.py",
    "e2e/test_places.py", "limits/test_hangs.py", "e2e/test_demo_ends.py", "api/test_live.py", "e2e/test_nouns.py",
)  # fmt: skip
