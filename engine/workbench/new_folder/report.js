// Counts the open orders; schedules.toml says when.
export default script(async ({ db, now }) => {
  const open = await db.orders.count({ state: "open" });
  console.log(`${open} open orders on ${now.toZonedDateTimeISO().toPlainDate()}`);
  return open;
});
