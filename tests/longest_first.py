"""Where a run of the whole suite begins, and what its processes take at a time."""

from typing import Any

#: Files that take longest, in about that order. A process of pytest-xdist takes a whole file (``--dist loadfile``), in the order of
#: collection (``--no-loadscope-reorder``): a long one that began last would leave the other processes with nothing to do.
LONGEST_FIRST = (
    "chaos/test_upgrades.py", "e2e/test_service.py", "web/test_every_page.py", "web/test_live_pages.py",
    "escape/test_cases.py", "e2e/test_demo.py", "features/ledgers/test_moves_of_busy_tenants.py",
    "escape/test_suite_sees.py", "chaos/test_cuts.py", "conformance/test_intl.py", "store/test_migrations.py",
    "test_guides.py", "store/test_storm_of_slots.py", "web/test_large_ledgers.py", "sim/test_planted_bugs.py",
    "web/test_tools.py", "e2e/test_examples.py", "test_wings.py", "store/test_round_trips.py",
    "limits/test_memory_peak.py", "features/connections/test_connections.py", "e2e/test_changes.py",
    "escape/test_script_images.py", "api/test_description.py", "test_author_tools.py", "test_wheel.py",
    "e2e/test_assistants.py", "features/ledgers/test_moving.py", "chaos/test_havoc.py", "sim/test_worlds.py",
    "node/test_stored_dry_runs.py", "chaos/test_recovery.py", "unit/runtime/test_artefact.py", "test_front_door.py",
    "escape/test_wasm_commands.py", "e2e/test_bench.py", "api/test_typescript_client.py", "web/test_lists.py",
    "features/ledgers/test_system.py", "escape/test_owned_worker.py",
    "escape/test_native_libraries.py", "store/test_database_users.py", "e2e/test_doctor.py",
    "features/archive/test_bent_archives.py", "e2e/test_exec.py", "unit/data/test_collations.py", "e2e/test_dev.py",
    "chaos/test_processes.py", "features/ledgers/test_pages.py", "store/test_seals.py",
    "deploy/test_reverse_proxy.py", "chaos/test_point_in_time.py", "store/test_file_modes.py",
    "unit/recurrence/test_english_phrases.py", "sim/test_server.py", "escape/test_boot_order.py",
    "api/test_route_table.py", "unit/runtime/test_errors.py", "e2e/test_places.py", "unit/data/test_sql_is_python.py",
    "api/test_client.py", "features/openid/test_sign_in.py", "unit/data/test_views.py", "e2e/test_escape.py",
    "unit/capabilities/test_changes.py", "api/test_live.py", "e2e/test_nouns.py",
    "api/test_requests.py", "unit/data/test_odd_tables.py", "unit/data/test_no_oracle.py", "chaos/test_restarts.py",
    "limits/test_native_choice.py", "e2e/test_beside_node.py", "escape/test_wasm_owned_compiler.py",
    "escape/test_values.py", "sim/test_shares.py", "node/test_soak.py", "e2e/test_command_line.py",
    "e2e/test_effects_killed.py",
)  # fmt: skip

#: Long files without fixtures of a module: their tests go to whichever process is free, else one file would outlast all others.
IN_PARTS = (
    "test_wings.py", "chaos/test_upgrades.py", "chaos/test_processes.py", "chaos/test_cuts.py", "e2e/test_examples.py",
    "conformance/test_intl.py", "sim/test_planted_bugs.py", "escape/test_hostile_arguments.py", "e2e/test_service.py",
    "escape/test_native_libraries.py", "features/ledgers/test_moves_of_busy_tenants.py", "store/test_storm_of_slots.py",
)  # fmt: skip


def scheduler(config: Any, log: Any) -> Any:
    """Return what hands files, and tests of long ones, to the processes of pytest-xdist; None for another distribution."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class Parts(LoadFileScheduling):  # type: ignore[misc]  # without types
        def _split_scope(self, nodeid: str) -> str:
            file: str = super()._split_scope(nodeid)
            return nodeid if file.endswith(tuple(f"tests/{name}" for name in IN_PARTS)) else file

    return Parts(config, log)
