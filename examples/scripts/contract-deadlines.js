// Mails the owner of a contract 30, 7 and 1 days before its notice period ends, by local calendar days.
// The days that were announced stand in the record: a missed day is made up for, and none is announced twice.
const DAYS = [30, 7, 1];

export default script(async ({ db, mail, now }) => {
  const today = now.toZonedDateTimeISO().toPlainDate();
  const sent = [];
  for await (const contract of db.contracts.each({ notice: { gte: today } })) {
    const left = today.until(contract.notice).days;
    const due = DAYS.find((days) => left <= days && !(contract.announced ?? []).some((/** @type {number} */ each) => each <= days));
    if (due === undefined) continue;
    const nearest = Math.min(...DAYS.filter((days) => left <= days));
    await mail.send({ to: contract.owner, subject: `${contract.name}: ${left} days to give notice`, text: `Until ${contract.notice}` });
    await db.contracts.update(contract.id, { announced: [...(contract.announced ?? []), nearest] });
    sent.push([contract.id, left]);
  }
  return sent;
});
