"""``lodger schedule``: the command of schedules that is made by hand; the others come from the table of operations."""

from lodger.engine.cli.commands import bulk
from lodger.engine.output.result_output import Group

app = Group(
    name="schedule", help="Manage schedules: when a script runs, and under which policies.", no_args_is_help=True
)
bulk.add("schedules", app)
