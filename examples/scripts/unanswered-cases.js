// Raises cases that nobody has answered for two working days, and tells their owner.
// Saturdays and Sundays do not count, so that Friday's cases are not raised on Monday morning.
export default script(async ({ db, mail, now }) => {
  let limit = now.toZonedDateTimeISO();
  for (let days = 0; days < 2; ) {
    limit = limit.subtract({ days: 1 });
    if (limit.dayOfWeek <= 5) days += 1;
  }
  const open = await db.cases.find({ state: "open", answered: null, created: { lt: limit }, priority: { ne: "high" } });
  for (const each of open) {
    await db.cases.update(each.id, { priority: "high" });
    await mail.send({ to: each.owner, subject: `Unanswered: ${each.title}`, text: `Since ${each.created}` });
  }
  return open.map((each) => each.id);
});
