"""Where a run of the whole suite begins, and what its processes take at a time."""

from typing import Any

#: Files that take longest, in about that order. A process of pytest-xdist takes a whole file (``--dist loadfile``), in the order of
#: collection (``--no-loadscope-reorder``): a long one that began last would leave the other processes with nothing to do.
LONGEST_FIRST = (
    "web/test_live_pages.py", "e2e/test_bench.py", "web/test_every_page.py", "chaos/test_cuts.py",
    "features/ledgers/test_silent_ledgers.py", "web/test_tools.py", "test_guides.py", "e2e/test_demo.py", "web/test_large_ledgers.py",
    "e2e/test_service.py", "escape/test_suite_sees.py", "sim/test_worlds.py", "escape/test_cases.py", "web/test_lists.py",
    "chaos/test_upgrades.py", "store/test_storm_of_slots.py", "features/ledgers/test_system.py", "store/test_round_trips.py",
    "e2e/test_examples.py", "api/test_typescript_client.py", "test_wheel.py", "features/ledgers/test_moves_of_busy_tenants.py",
    "features/connections/test_connections.py", "conformance/test_intl.py", "escape/test_owned_worker.py",
    "deploy/test_reverse_proxy.py", "chaos/test_havoc.py", "e2e/test_changes.py", "escape/test_hostile_arguments.py",
    "e2e/test_nouns.py", "unit/runtime/test_artefact.py", "sim/test_planted_bugs.py", "escape/test_script_images.py",
    "chaos/test_recovery.py", "test_front_door.py", "api/test_requests.py", "test_docs.py", "store/test_database_users.py",
    "store/test_migrations.py", "features/replays/test_replays.py", "chaos/test_processes.py", "e2e/test_script_folder.py",
    "api/test_live.py", "unit/recurrence/test_search.py", "e2e/test_command_line.py", "features/openid/test_sign_in.py",
    "e2e/test_exec.py", "api/test_client.py", "e2e/test_folder_tests.py", "chaos/test_point_in_time.py", "store/test_backups.py",
    "limits/test_memory_peak.py", "unit/data/test_isolation.py", "e2e/test_places.py", "e2e/test_effects_killed.py", "e2e/test_up.py",
    "api/test_description.py", "e2e/test_streams.py", "unit/sandbox/test_source_texts.py", "escape/test_values.py",
    "unit/capabilities/test_changes.py", "deploy/test_sbom.py", "chaos/test_failover.py", "escape/test_wasm_walls.py",
    "api/test_route_table.py", "test_wings.py", "escape/test_degraded_host.py", "store/test_hostile_arguments.py", "web/test_pages.py",
    "web/test_embedding.py",
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
