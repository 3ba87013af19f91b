"""The verbs on alert rules and raised alerts."""

from collections.abc import Iterable

from sqlalchemy import Connection

from lodger.engine.capabilities.mail import checked_address
from lodger.engine.core.access.roles import Role
from lodger.engine.core.errors import InputError
from lodger.engine.core.refusal import CallRefused
from lodger.engine.features.alerts import evaluation, messages, rules
from lodger.engine.features.alerts.messages import Alert
from lodger.engine.features.alerts.rules import AlertRule
from lodger.engine.service.nouns.base import Noun
from lodger.engine.service.operations.declaration import M, operation
from lodger.engine.store.context import dump_json
from lodger.engine.store.queue import outbox
from lodger.engine.store.tenants import tenants
from lodger.engine.store.tenants.grants import is_one_of

# Inside the class ``list`` is a verb.
RuleList = list[AlertRule]
AlertList = list[Alert]
#: Maximum number of alerts of one answer.
MAX_LISTED = 1000


class Alerts(Noun[M]):
    """Alert rules: messages to people when schedules fail, are late, slow or silent, or budgets are nearly used up."""

    @operation("PUT", "/tenants/{tenant_id}/alerts/{name}", Role.EDITOR, tagged=True, stores=True)
    def put(
        self,
        tenant_id: str,
        name: str,
        *,
        kinds: Iterable[str] = ("failed", "recovered"),
        schedule: str | None = None,
        mail: Iterable[str] = (),
        webhooks: Iterable[str] = (),
        quiet: Iterable[str] = (),
        tz: str = "UTC",
        late_s: int = 60,
        overran_s: int | None = None,
        silent_s: int = 600,
    ) -> AlertRule:
        """Create an alert rule, or replace all values of an existing one.

        Args:
            kinds: failed, recovered, late, missed, overran, slow, budget, silent.
            schedule: name or id of the only schedule; all schedules of the tenant when left out.
            mail: addresses of the tenant's own people, or granted ones.
            webhooks: names of the tenant's webhooks; those of format slack receive text.
            quiet: windows in which alerts wait, such as 22:00-07:00 or sat,sun 00:00-24:00; sent as one message afterwards.
            tz: IANA time zone of these windows.
            late_s: seconds after which a due action that has not started is late.
            overran_s: seconds after which a running action has overrun; its schedule's next slot when left out.
            silent_s: seconds after a slot without success from which a schedule is silent.

        Raises:
            InputError: alert_name_invalid, alert_kind_unknown, alert_receiver_missing, alert_address_denied,
                alert_threshold_invalid, alerts_full, quiet_hours_invalid, zone_unknown.
            NotFound: tenant_unknown, schedule_unknown, webhook_unknown.
        """
        addresses = tuple(mail)
        wanted = {
            "kinds": tuple(kinds), "schedule": schedule, "mail": addresses, "webhooks": tuple(webhooks), "quiet": tuple(quiet),
            "zone": tz, "late_s": late_s, "overran_s": overran_s, "silent_s": silent_s,
        }  # fmt: skip
        with self._changing(Alerts.put, tenant_id, name, name) as change:
            change.before(rules.named.find(change.connection, tenant_id, name))
            self._check_addresses(change.connection, tenant_id, addresses)
            return change.made(rules.put(change.connection, tenant_id, name, wanted, self._now_us))

    def _check_addresses(self, connection: Connection, tenant_id: str, addresses: tuple[str, ...]) -> None:
        """Require addresses that the tenant's scripts may mail, too."""
        tenant = tenants.get(connection, tenant_id)
        held = self.context.content_cache.grants(dump_json(tenant.grants))
        for each in addresses:
            try:
                checked_address(each)
                known = is_one_of(tenant.people, each)
            except CallRefused:
                known = False
            if not known and not held.of_mail(each, own=False):
                raise InputError("alert_address_denied", address=each)

    @operation("GET", "/tenants/{tenant_id}/alerts/{name}", Role.VIEWER)
    def get(self, tenant_id: str, name: str) -> AlertRule:
        """Return one alert rule.

        Raises:
            NotFound: alert_unknown.
        """
        return self._read(rules.named.get, tenant_id, name)

    @operation("GET", "/tenants/{tenant_id}/alerts", Role.VIEWER)
    def list(self, tenant_id: str) -> RuleList:
        """List a tenant's alert rules by name.

        Raises:
            NotFound: tenant_unknown.
        """
        return self._read(rules.named.list_all, tenant_id)

    @operation(
        "DELETE",
        "/tenants/{tenant_id}/alerts/{name}",
        Role.EDITOR,
        status=204,
        tagged=True,
        confirm="delete alert rule {name} of {tenant_id}",
    )
    def delete(self, tenant_id: str, name: str) -> None:
        """Delete an alert rule with its raised alerts; what is in the outbox is still sent.

        Raises:
            NotFound: alert_unknown.
        """
        with self._changing(Alerts.delete, tenant_id, name, name) as change:
            change.before(rules.erase(change.connection, tenant_id, name))
            change.made(None, after=None)

    @operation("POST", "/tenants/{tenant_id}/alerts/{name}/test", Role.EDITOR)
    def test(self, tenant_id: str, name: str) -> int:
        """Send a test message to every receiver of a rule, even in quiet hours; return the number of messages.

        Raises:
            NotFound: alert_unknown.
        """
        with self._changing(Alerts.test, tenant_id, name, name) as change:
            rule = rules.named.get(change.connection, tenant_id, name)
            rows = messages.test(rule, self.context.ids.new())
            outbox.enqueue(change.connection, rows, self._now_us)
            return change.made(len(rows), after={"name": name, "messages": len(rows)})

    @operation("GET", "/tenants/{tenant_id}/raised-alerts", Role.VIEWER, items="alerts")
    def raised(self, tenant_id: str, *, open_only: bool = False, limit: int = 100) -> AlertList:
        """List a tenant's alerts that are open or were so in the last 30 days, newest first; with ``open_only`` those that are open.

        Raises:
            NotFound: tenant_unknown.
        """
        with self._reading(tenant_id) as connection:
            found = max(1, min(limit, MAX_LISTED))
            return evaluation.list_raised(connection, tenant_id, open_only=open_only, limit=found)
