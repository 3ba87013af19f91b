"""A platform's own test: what its customers' schedules do in a month, in a second. pytest examples/test_platform.py"""

from datetime import UTC, datetime

from lodger.engine.testing import Stage

REMIND = """
export default async function ({ db, mail, now }) {
  const stale = await db.carts.find({ state: "open", modified: { lt: now.subtract({ days: 1 }) } });
  for (const cart of stale) {
    await mail.send({ to: cart.email, subject: "You left something behind", text: "It is still there." });
    await db.carts.update(cart.id, { state: "reminded" });
  }
  return { reminded: stale.length };
}
"""
CART = """
export default async ({ db, now }) => {
  await db.carts.insert({ state: "open", email: "ann@example.com", modified: now });
};
"""


def test_a_forgotten_cart_is_reminded_of_once() -> None:
    """31 mornings, summer time and all."""
    with Stage(at=datetime(2027, 3, 1, 6, tzinfo=UTC)) as stage:
        engine = stage.engine
        engine.tenants.create("oak", people=["ann@example.com"])
        engine.scripts.put("oak", "remind", REMIND)
        engine.scripts.put("oak", "cart", CART)
        engine.schedules.create("oak", "mornings", script="remind", rules="0 9 * * *", tz="Europe/Berlin")
        engine.run_in("oak", "cart", "5h")

        stage.advance("24h")
        assert stage.assert_ran("oak", "mornings", times=1).result == {"reminded": 0}

        stage.advance("30d")
        stage.assert_ran("oak", "mornings", times=31)
        mail = stage.assert_mailed("oak", to="ann@example.com", about="left something")
        assert stage.sent("oak") == [mail], "once, not every morning"
        assert [cart["state"] for cart in stage.documents("oak", "carts")] == ["reminded"]
