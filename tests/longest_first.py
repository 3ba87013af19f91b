"""Where a run of the whole suite begins."""

#: Files that take longest, in about that order. A process of pytest-xdist takes a whole file (``--dist loadfile``), in the order of
#: collection (``--no-loadscope-reorder``): a long one that began last would leave the other processes with nothing to do.
LONGEST_FIRST = (
    "escape/test_owned_worker.py", "e2e/test_service.py", "e2e/test_demo.py", "chaos/test_cuts.py", "sim/test_worlds.py",
    "limits/test_memory_peak.py", "sim/test_planted_bugs.py", "escape/test_suite_sees.py", "e2e/test_effects_killed.py",
    "test_guides.py",
    "e2e/test_changes.py", "chaos/test_processes.py", "api/test_description.py", "e2e/test_bench.py", "test_language.py",
    "unit/data/test_isolation.py", "chaos/test_restarts.py", "unit/capabilities/test_attempt.py", "escape/test_cases.py",
    "e2e/test_examples.py", "chaos/test_havoc.py", "sim/test_shares.py", "escape/test_native_libraries.py",
    "e2e/test_streams.py", "unit/capabilities/test_bulk.py", "unit/data/test_sql_is_python.py", "store/test_wasm_scripts.py",
    "api/test_live.py", "unit/data/test_views.py", "api/test_sessions.py", "test_public_api.py",
    "escape/test_degraded_host.py", "store/test_seals.py", "unit/scripts/test_globals.py", "api/test_requests.py",
    "limits/test_rows.py", "web/test_browser.py", "node/test_source_check.py", "escape/test_hostile_arguments.py",
    "sim/test_server.py", "escape/test_wasm_commands.py", "store/test_hostile_arguments.py", "conformance/test_schyntax.py",
    "unit/runtime/test_hostile.py", "store/test_audit.py", "unit/runtime/test_artefact.py", "escape/test_every_syscall.py",
    "node/test_wasm_node.py", "e2e/test_places.py", "unit/data/test_large_rows.py", "store/test_silence.py",
    "api/test_client.py", "chaos/test_recovery.py",
)  # fmt: skip
