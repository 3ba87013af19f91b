// Congratulates at nine in the recipient's own time zone: it runs every hour and finds the zones where it is nine now.
// 29 February is celebrated on 28 February in other years; `year` in the record keeps a repeated run from a second mail.
/** @param {Instant} now */
const offsets = (now) => Array.from({ length: 27 }, (_each, at) => at - 12).filter((hours) => (24 + now.toZonedDateTimeISO("UTC").hour + hours) % 24 === 9);

export default script(async ({ db, mail, now }) => {
  const sent = [];
  for (const hours of offsets(now)) {
    const local = new Date(now.epochMilliseconds + hours * 3_600_000);
    const year = local.getUTCFullYear();
    const days = [local.toISOString().slice(5, 10)];
    if (days[0] === "02-28" && new Date(Date.UTC(year, 1, 29)).getUTCMonth() !== 1) days.push("02-29");
    for (const person of await db.people.find({ offset: hours, birthday: { in: days }, congratulated: { ne: year } })) {
      await mail.send({ to: person.mail, subject: `Happy birthday, ${person.name}!`, text: "Have a good day." });
      await db.people.update(person.id, { congratulated: year });
      sent.push(person.id);
    }
  }
  return sent;
});
