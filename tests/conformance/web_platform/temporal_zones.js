const { Instant: Moment, ZonedDateTime: Zoned, PlainDateTime, Now, Duration } = Temporal;
const ways = ["compatible", "earlier", "later"];
const local = (text, zone) => ways.map((disambiguation) => PlainDateTime.from(text).toZonedDateTime(zone, { disambiguation }).toString({ timeZoneName: "never" }));

// local times that a change of the offset skips, or shows twice
await check("gap, Berlin", () => local("2026-03-29T02:30", "Europe/Berlin"), ["2026-03-29T03:30:00+02:00", "2026-03-29T01:30:00+01:00", "2026-03-29T03:30:00+02:00"]);
await check("fold, Berlin", () => local("2026-10-25T02:30", "Europe/Berlin"), ["2026-10-25T02:30:00+02:00", "2026-10-25T02:30:00+02:00", "2026-10-25T02:30:00+01:00"]);
await check("gap, New York", () => local("2026-03-08T02:00", "America/New_York"), ["2026-03-08T03:00:00-04:00", "2026-03-08T01:00:00-05:00", "2026-03-08T03:00:00-04:00"]);
await check("fold, New York", () => local("2026-11-01T01:59:59.999999999", "America/New_York"), ["2026-11-01T01:59:59.999999999-04:00", "2026-11-01T01:59:59.999999999-04:00", "2026-11-01T01:59:59.999999999-05:00"]);
await check("gap of half an hour, Lord Howe", () => local("2026-10-04T02:15", "Australia/Lord_Howe"), ["2026-10-04T02:45:00+11:00", "2026-10-04T01:45:00+10:30", "2026-10-04T02:45:00+11:00"]);
await check("fold of half an hour, Lord Howe", () => local("2026-04-05T01:45", "Australia/Lord_Howe"), ["2026-04-05T01:45:00+11:00", "2026-04-05T01:45:00+11:00", "2026-04-05T01:45:00+10:30"]);
await check("a skipped day, Apia", () => local("2011-12-30T12:00", "Pacific/Apia"), ["2011-12-31T12:00:00+14:00", "2011-12-29T12:00:00-10:00", "2011-12-31T12:00:00+14:00"]);
await check("Ramadan, Casablanca", () => ["2026-02-14T12:00Z", "2026-02-16T12:00Z", "2026-03-23T12:00Z", "2027-02-08T12:00Z"].map((at) => Moment.from(at).toZonedDateTimeISO("Africa/Casablanca").offset), ["+01:00", "+00:00", "+01:00", "+00:00"]);
await throws("a gap that is refused", () => PlainDateTime.from("2026-03-29T02:30").toZonedDateTime("Europe/Berlin", { disambiguation: "reject" }), "RangeError");
await throws("a fold that is refused", () => Zoned.from("2026-10-25T02:30[Europe/Berlin]", { disambiguation: "reject" }), "RangeError");
await check("the offset decides", () => Zoned.from("2026-10-25T02:30+01:00[Europe/Berlin]").epochMilliseconds, 1792891800000);
await throws("an offset that the zone does not have", () => Zoned.from("2026-07-01T02:30+01:00[Europe/Berlin]"), "RangeError");
await check("a wrong offset is ignored, used or preferred", () => ["ignore", "use", "prefer"].map((offset) => String(Zoned.from("2026-07-01T02:30+01:00[Europe/Berlin]", { offset }))), ["2026-07-01T02:30:00+02:00[Europe/Berlin]", "2026-07-01T03:30:00+02:00[Europe/Berlin]", "2026-07-01T02:30:00+02:00[Europe/Berlin]"]);

// days
const berlin = (text) => Zoned.from(text + "[Europe/Berlin]");
await check("hours of a day", () => ["2026-03-29", "2026-10-25", "2026-06-01"].map((day) => berlin(day).hoursInDay), [23, 25, 24]);
await check("hours of odd days", () => [Zoned.from("2026-10-04[Australia/Lord_Howe]").hoursInDay, Zoned.from("2011-12-29[Pacific/Apia]").hoursInDay], [23.5, 24]);
await check("start of a day that begins at one", () => String(Zoned.from("2018-11-04T12:00[America/Sao_Paulo]").startOfDay()), "2018-11-04T01:00:00-02:00[America/Sao_Paulo]");
await check("a day later and 24 hours later", () => [{ days: 1 }, { hours: 24 }].map((amount) => String(berlin("2026-03-28T12:00").add(amount))), ["2026-03-29T12:00:00+02:00[Europe/Berlin]", "2026-03-29T13:00:00+02:00[Europe/Berlin]"]);
await check("a day before, into the gap", () => String(berlin("2026-03-30T02:30").subtract({ days: 1 })), "2026-03-29T03:30:00+02:00[Europe/Berlin]");
await check("until, in days and in hours", () => ["days", "hours"].map((largestUnit) => String(berlin("2026-03-28T12:00").until(berlin("2026-03-29T13:00"), { largestUnit }))), ["P1DT1H", "PT24H"]);
await check("since, in months", () => String(berlin("2026-03-01T12:00").since(berlin("2026-01-30T12:00"), { largestUnit: "months" })), "P1M2D");
await check("a rounded day", () => String(berlin("2026-03-29T11:30").round("day")), "2026-03-29T00:00:00+01:00[Europe/Berlin]");
await check("fields changed", () => String(berlin("2026-03-28T02:30").with({ day: 29 })), "2026-03-29T03:30:00+02:00[Europe/Berlin]");
await check("the same instant elsewhere", () => String(berlin("2026-06-01T12:00").withTimeZone("Asia/Kathmandu")), "2026-06-01T15:45:00+05:45[Asia/Kathmandu]");
await check("an offset as a zone", () => String(Moment.from("2026-01-01T00:00Z").toZonedDateTimeISO("-03:30")), "2025-12-31T20:30:00-03:30[-03:30]");
await check("local mean time, with seconds", () => [Moment.from("1880-01-01T00:00Z").toZonedDateTimeISO("Europe/Berlin"), Moment.from("1800-01-01T00:00Z").toZonedDateTimeISO("Europe/Amsterdam").offsetNanoseconds / 1e9], ["1880-01-01T00:53:28+00:53[Europe/Berlin]", 1050]);
await check("the far future follows the rule", () => ["+012345-01-15T00:00Z", "+012345-07-15T00:00Z", "2100-07-01T00:00Z"].map((at) => Moment.from(at).toZonedDateTimeISO("America/New_York").offset), ["-05:00", "-04:00", "-04:00"]);
await check("the ends of time", () => [Moment.fromEpochNanoseconds(8640000000000000000000n).toZonedDateTimeISO("Pacific/Kiritimati"), Moment.fromEpochNanoseconds(-8640000000000000000000n).toZonedDateTimeISO("America/New_York")].map(String), ["+275760-09-13T14:00:00+14:00[Pacific/Kiritimati]", "-271821-04-19T19:03:58-04:56[America/New_York]"]);

// changes of the offset
const changes = (text, zone, direction) => {
  const found = Zoned.from(`${text}[${zone}]`).getTimeZoneTransition(direction);
  return found === null ? null : found.toString();
};
await check("next change", () => changes("2026-01-01", "Europe/Berlin", "next"), "2026-03-29T03:00:00+02:00[Europe/Berlin]");
await check("previous change", () => changes("2026-01-01", "Europe/Berlin", { direction: "previous" }), "2025-10-26T02:00:00+01:00[Europe/Berlin]");
await check("the change of Apia's day", () => changes("2011-12-01", "Pacific/Apia", "next"), "2011-12-31T00:00:00+14:00[Pacific/Apia]");
await check("the change at an instant is not the previous one of itself", () => changes("2026-03-29T03:00:00+02:00", "Europe/Berlin", "previous"), "2025-10-26T02:00:00+01:00[Europe/Berlin]");
await check("the last change", () => changes("2026-01-01", "Asia/Kolkata", "previous"), "1945-10-14T23:00:00+05:30[Asia/Kolkata]");
await check("no further change", () => [changes("2026-01-01", "Asia/Kolkata", "next"), changes("2026-01-01", "UTC", "next"), changes("1800-01-01", "Europe/Berlin", "previous")], [null, null, null]);
await check("Casablanca, twice a year", () => [changes("2026-01-01", "Africa/Casablanca", "next"), changes("2026-03-01", "Africa/Casablanca", "next")], ["2026-02-15T02:00:00+00:00[Africa/Casablanca]", "2026-03-22T03:00:00+01:00[Africa/Casablanca]"]);

// names of zones
await check("names in any case", () => ["europe/BERLIN", "america/port-AU-prince", "UTC", "etc/gmt+5", "antarctica/dumontdurville"].map((zone) => Moment.from("2026-01-01T00:00Z").toZonedDateTimeISO(zone).timeZoneId), ["Europe/Berlin", "America/Port-au-Prince", "UTC", "Etc/GMT+5", "Antarctica/DumontDUrville"]);
await check("aliases are equal and keep their names", () => {
  const [old, now] = ["Asia/Calcutta", "Asia/Kolkata"].map((zone) => Moment.from("2026-01-01T00:00Z").toZonedDateTimeISO(zone));
  return [old.equals(now), old.timeZoneId, Moment.from("2026-01-01T00:00Z").toZonedDateTimeISO("Etc/UTC").equals(Moment.from("2026-01-01T00:00Z").toZonedDateTimeISO("UTC"))];
}, [true, "Asia/Calcutta", true]);
await check("a zone of another country is not equal", () => Moment.from("2026-01-01T00:00Z").toZonedDateTimeISO("Europe/Oslo").equals(Moment.from("2026-01-01T00:00Z").toZonedDateTimeISO("Europe/Berlin")), false);
const odd = ["../../etc/passwd", "Europe/Berlin/", "/Europe/Berlin", "Europe", "europe/../UTC", "EST5EDT4", "", " UTC", "Europe/Berlin\0", "Mars/Phobos", "x".repeat(1e6), "+25:00", "posixrules", "tzdata.zi", "zone.tab", "ACT"];
await check("names that are none", () => odd.map((zone) => { try { return String(Moment.from("2026-01-01T00:00Z").toZonedDateTimeISO(zone)); } catch (error) { return error.name; } }), odd.map(() => "RangeError"));
await throws("a zone that is no text", () => Now.zonedDateTimeISO(5), "TypeError");

// the run
await check("the clock of the run", () => { const before = Date.now(); const at = Now.instant().epochNanoseconds; return [at % 1000000n, at >= BigInt(before) * 1000000n, at <= BigInt(Date.now()) * 1000000n]; }, [0n, true, true]);
await check("the zone of the schedule", () => [Now.timeZoneId(), Now.zonedDateTimeISO().timeZoneId, Now.plainDateISO().equals(Now.zonedDateTimeISO().toPlainDate()), Now.plainTimeISO("Asia/Tokyo").hour === (Now.plainTimeISO("UTC").hour + 9) % 24], [action.timezone, action.timezone, true, true]);
await check("no Intl is left behind by the library", () => Object.getOwnPropertyNames(globalThis).filter((name) => name[0] === "$"), []);
await check("a loop over instants asks for a zone once", () => {
  const start = Moment.from("2026-01-01T00:00Z");
  const offsets = {};
  for (let day = 0; day < 365; day++) (offsets[start.add({ hours: 24 * day }).toZonedDateTimeISO("Europe/London").offset] ??= []).push(day);
  return [offsets["+00:00"].length, offsets["+01:00"].length];
}, [155, 210]);
await check("rounding relative to a zoned time", () => Duration.from({ hours: 47 }).round({ largestUnit: "days", relativeTo: berlin("2026-03-28T00:00") }).toString(), "P2D");
await check("total days relative to a zoned time", () => Duration.from({ hours: 36 }).total({ unit: "days", relativeTo: berlin("2026-10-25T00:00") }), 1 + 11 / 24);
await check("comparing durations by a zoned time", () => Duration.compare({ days: 1 }, { hours: 24 }, { relativeTo: berlin("2026-10-25") }), 1);
