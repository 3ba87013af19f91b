// Temporal: dates, times and durations of ECMAScript, with the engine's time zone data. Nanoseconds; values never change.

declare namespace Temporal {
  type DateUnit = "year" | "month" | "week" | "day";
  type TimeUnit = "hour" | "minute" | "second" | "millisecond" | "microsecond" | "nanosecond";
  type Plural<Unit extends string> = Unit | `${Unit}s`;
  type Overflow = { overflow?: "constrain" | "reject" };
  type RoundingMode = "ceil" | "floor" | "expand" | "trunc" | "halfCeil" | "halfFloor" | "halfExpand" | "halfTrunc" | "halfEven";
  type Disambiguation = { disambiguation?: "compatible" | "earlier" | "later" | "reject" };
  type Offset = { offset?: "use" | "prefer" | "ignore" | "reject" };
  type Difference<Unit extends string> = { largestUnit?: "auto" | Plural<Unit>; smallestUnit?: Plural<Unit>; roundingIncrement?: number; roundingMode?: RoundingMode };
  type Rounding<Unit extends string> = Plural<Unit> | { smallestUnit: Plural<Unit>; roundingIncrement?: number; roundingMode?: RoundingMode };
  type TimeText = { fractionalSecondDigits?: "auto" | number; smallestUnit?: Plural<Exclude<TimeUnit, "hour">>; roundingMode?: RoundingMode };
  type CalendarText = { calendarName?: "auto" | "always" | "never" | "critical" };
  type Locales = string | readonly string[];
  type DateFields = { year?: number; era?: string; eraYear?: number; month?: number; monthCode?: string; day?: number };
  type TimeFields = { hour?: number; minute?: number; second?: number; millisecond?: number; microsecond?: number; nanosecond?: number };
  type DurationFields = {
    years?: number; months?: number; weeks?: number; days?: number; hours?: number; minutes?: number; seconds?: number; milliseconds?: number;
    microseconds?: number; nanoseconds?: number;
  }; // prettier-ignore
  type Like<Value, Fields> = Value | Fields | string;
  type DateLike = Like<PlainDate | PlainDateTime | ZonedDateTime, DateFields & { calendar?: string }>;
  type DateTimeLike = Like<PlainDateTime | PlainDate | ZonedDateTime, DateFields & TimeFields & { calendar?: string }>;
  type ZonedLike = Like<ZonedDateTime, DateFields & TimeFields & { timeZone: string | ZonedDateTime; offset?: string; calendar?: string }>;
  type TimeLike = Like<PlainTime | PlainDateTime | ZonedDateTime, TimeFields>;
  type DurationLike = Like<Duration, DurationFields>;
  type InstantLike = Instant | ZonedDateTime | ScriptInstant | string;
  type RelativeTo = DateLike | ZonedLike;

  /** A point in time, without calendar or time zone. The global `Instant` is one for every function here; `Date` has `toTemporalInstant()`. */
  class Instant {
    constructor(epochNanoseconds: bigint);
    static from(value: InstantLike): Instant;
    static fromEpochMilliseconds(milliseconds: number): Instant;
    static fromEpochNanoseconds(nanoseconds: bigint): Instant;
    static compare(one: InstantLike, two: InstantLike): -1 | 0 | 1;
    readonly epochMilliseconds: number;
    readonly epochNanoseconds: bigint;
    add(duration: DurationLike): Instant;
    subtract(duration: DurationLike): Instant;
    until(other: InstantLike, options?: Difference<TimeUnit>): Duration;
    since(other: InstantLike, options?: Difference<TimeUnit>): Duration;
    round(to: Rounding<TimeUnit>): Instant;
    equals(other: InstantLike): boolean;
    toZonedDateTimeISO(timeZone: string | ZonedDateTime): ZonedDateTime;
    toString(options?: TimeText & { timeZone?: string | ZonedDateTime }): string;
    toJSON(): string;
    toLocaleString(locales?: Locales, options?: object): string;
    valueOf(): never;
    readonly [Symbol.toStringTag]: "Temporal.Instant";
  }

  /** A point in time with a time zone and a calendar. */
  class ZonedDateTime {
    constructor(epochNanoseconds: bigint, timeZone: string, calendar?: string);
    static from(value: ZonedLike, options?: Overflow & Disambiguation & Offset): ZonedDateTime;
    static compare(one: ZonedLike, two: ZonedLike): -1 | 0 | 1;
    readonly calendarId: string;
    readonly timeZoneId: string;
    readonly era: string | undefined;
    readonly eraYear: number | undefined;
    readonly year: number;
    readonly month: number;
    readonly monthCode: string;
    readonly day: number;
    readonly hour: number;
    readonly minute: number;
    readonly second: number;
    readonly millisecond: number;
    readonly microsecond: number;
    readonly nanosecond: number;
    readonly epochMilliseconds: number;
    readonly epochNanoseconds: bigint;
    /** Such as `+01:00`. */
    readonly offset: string;
    readonly offsetNanoseconds: number;
    /** 1 (Monday) to 7 (Sunday). */
    readonly dayOfWeek: number;
    readonly dayOfYear: number;
    readonly weekOfYear: number | undefined;
    readonly yearOfWeek: number | undefined;
    /** 23 or 25 on most days on which the offset changes. */
    readonly hoursInDay: number;
    readonly daysInWeek: number;
    readonly daysInMonth: number;
    readonly daysInYear: number;
    readonly monthsInYear: number;
    readonly inLeapYear: boolean;
    with(fields: DateFields & TimeFields & { offset?: string }, options?: Overflow & Disambiguation & Offset): ZonedDateTime;
    withPlainTime(time?: TimeLike): ZonedDateTime;
    withTimeZone(timeZone: string | ZonedDateTime): ZonedDateTime;
    withCalendar(calendar: string): ZonedDateTime;
    add(duration: DurationLike, options?: Overflow): ZonedDateTime;
    subtract(duration: DurationLike, options?: Overflow): ZonedDateTime;
    until(other: ZonedLike, options?: Difference<DateUnit | TimeUnit>): Duration;
    since(other: ZonedLike, options?: Difference<DateUnit | TimeUnit>): Duration;
    round(to: Rounding<"day" | TimeUnit>): ZonedDateTime;
    startOfDay(): ZonedDateTime;
    /** The next or the previous change of the zone's offset. */
    getTimeZoneTransition(direction: "next" | "previous" | { direction: "next" | "previous" }): ZonedDateTime | null;
    equals(other: ZonedLike): boolean;
    toInstant(): Instant;
    toPlainDate(): PlainDate;
    toPlainTime(): PlainTime;
    toPlainDateTime(): PlainDateTime;
    toString(options?: TimeText & CalendarText & { timeZoneName?: "auto" | "never" | "critical"; offset?: "auto" | "never" }): string;
    toJSON(): string;
    toLocaleString(locales?: Locales, options?: object): string;
    valueOf(): never;
    readonly [Symbol.toStringTag]: "Temporal.ZonedDateTime";
  }

  /** A calendar date, without time and zone. */
  class PlainDate {
    constructor(year: number, month: number, day: number, calendar?: string);
    static from(value: DateLike, options?: Overflow): PlainDate;
    static compare(one: DateLike, two: DateLike): -1 | 0 | 1;
    readonly calendarId: string;
    readonly era: string | undefined;
    readonly eraYear: number | undefined;
    readonly year: number;
    readonly month: number;
    readonly monthCode: string;
    readonly day: number;
    /** 1 (Monday) to 7 (Sunday). */
    readonly dayOfWeek: number;
    readonly dayOfYear: number;
    readonly weekOfYear: number | undefined;
    readonly yearOfWeek: number | undefined;
    readonly daysInWeek: number;
    readonly daysInMonth: number;
    readonly daysInYear: number;
    readonly monthsInYear: number;
    readonly inLeapYear: boolean;
    with(fields: DateFields, options?: Overflow): PlainDate;
    withCalendar(calendar: string): PlainDate;
    add(duration: DurationLike, options?: Overflow): PlainDate;
    subtract(duration: DurationLike, options?: Overflow): PlainDate;
    until(other: DateLike, options?: Difference<DateUnit>): Duration;
    since(other: DateLike, options?: Difference<DateUnit>): Duration;
    equals(other: DateLike): boolean;
    toPlainDateTime(time?: TimeLike): PlainDateTime;
    toPlainYearMonth(): PlainYearMonth;
    toPlainMonthDay(): PlainMonthDay;
    toZonedDateTime(zone: string | { timeZone: string; plainTime?: TimeLike }): ZonedDateTime;
    toString(options?: CalendarText): string;
    toJSON(): string;
    toLocaleString(locales?: Locales, options?: object): string;
    valueOf(): never;
    readonly [Symbol.toStringTag]: "Temporal.PlainDate";
  }

  /** A time on the clock, without date and zone. */
  class PlainTime {
    constructor(hour?: number, minute?: number, second?: number, millisecond?: number, microsecond?: number, nanosecond?: number);
    static from(value: TimeLike, options?: Overflow): PlainTime;
    static compare(one: TimeLike, two: TimeLike): -1 | 0 | 1;
    readonly hour: number;
    readonly minute: number;
    readonly second: number;
    readonly millisecond: number;
    readonly microsecond: number;
    readonly nanosecond: number;
    with(fields: TimeFields, options?: Overflow): PlainTime;
    add(duration: DurationLike): PlainTime;
    subtract(duration: DurationLike): PlainTime;
    until(other: TimeLike, options?: Difference<TimeUnit>): Duration;
    since(other: TimeLike, options?: Difference<TimeUnit>): Duration;
    round(to: Rounding<TimeUnit>): PlainTime;
    equals(other: TimeLike): boolean;
    toString(options?: TimeText): string;
    toJSON(): string;
    toLocaleString(locales?: Locales, options?: object): string;
    valueOf(): never;
    readonly [Symbol.toStringTag]: "Temporal.PlainTime";
  }

  /** A date and a time on the clock, without zone. */
  class PlainDateTime {
    constructor(year: number, month: number, day: number, hour?: number, minute?: number, second?: number, millisecond?: number, microsecond?: number, nanosecond?: number, calendar?: string);
    static from(value: DateTimeLike, options?: Overflow): PlainDateTime;
    static compare(one: DateTimeLike, two: DateTimeLike): -1 | 0 | 1;
    readonly calendarId: string;
    readonly era: string | undefined;
    readonly eraYear: number | undefined;
    readonly year: number;
    readonly month: number;
    readonly monthCode: string;
    readonly day: number;
    readonly hour: number;
    readonly minute: number;
    readonly second: number;
    readonly millisecond: number;
    readonly microsecond: number;
    readonly nanosecond: number;
    /** 1 (Monday) to 7 (Sunday). */
    readonly dayOfWeek: number;
    readonly dayOfYear: number;
    readonly weekOfYear: number | undefined;
    readonly yearOfWeek: number | undefined;
    readonly daysInWeek: number;
    readonly daysInMonth: number;
    readonly daysInYear: number;
    readonly monthsInYear: number;
    readonly inLeapYear: boolean;
    with(fields: DateFields & TimeFields, options?: Overflow): PlainDateTime;
    withPlainTime(time?: TimeLike): PlainDateTime;
    withCalendar(calendar: string): PlainDateTime;
    add(duration: DurationLike, options?: Overflow): PlainDateTime;
    subtract(duration: DurationLike, options?: Overflow): PlainDateTime;
    until(other: DateTimeLike, options?: Difference<DateUnit | TimeUnit>): Duration;
    since(other: DateTimeLike, options?: Difference<DateUnit | TimeUnit>): Duration;
    round(to: Rounding<"day" | TimeUnit>): PlainDateTime;
    equals(other: DateTimeLike): boolean;
    toZonedDateTime(timeZone: string | ZonedDateTime, options?: Disambiguation): ZonedDateTime;
    toPlainDate(): PlainDate;
    toPlainTime(): PlainTime;
    toString(options?: TimeText & CalendarText): string;
    toJSON(): string;
    toLocaleString(locales?: Locales, options?: object): string;
    valueOf(): never;
    readonly [Symbol.toStringTag]: "Temporal.PlainDateTime";
  }

  /** A month of a year. */
  class PlainYearMonth {
    constructor(year: number, month: number, calendar?: string, referenceDay?: number);
    static from(value: Like<PlainYearMonth | PlainDate | PlainDateTime | ZonedDateTime, DateFields & { calendar?: string }>, options?: Overflow): PlainYearMonth;
    static compare(one: Like<PlainYearMonth, DateFields>, two: Like<PlainYearMonth, DateFields>): -1 | 0 | 1;
    readonly calendarId: string;
    readonly era: string | undefined;
    readonly eraYear: number | undefined;
    readonly year: number;
    readonly month: number;
    readonly monthCode: string;
    readonly daysInMonth: number;
    readonly daysInYear: number;
    readonly monthsInYear: number;
    readonly inLeapYear: boolean;
    with(fields: DateFields, options?: Overflow): PlainYearMonth;
    add(duration: DurationLike, options?: Overflow): PlainYearMonth;
    subtract(duration: DurationLike, options?: Overflow): PlainYearMonth;
    until(other: Like<PlainYearMonth, DateFields>, options?: Difference<"year" | "month">): Duration;
    since(other: Like<PlainYearMonth, DateFields>, options?: Difference<"year" | "month">): Duration;
    equals(other: Like<PlainYearMonth, DateFields>): boolean;
    toPlainDate(fields: { day: number }): PlainDate;
    toString(options?: CalendarText): string;
    toJSON(): string;
    toLocaleString(locales?: Locales, options?: object): string;
    valueOf(): never;
    readonly [Symbol.toStringTag]: "Temporal.PlainYearMonth";
  }

  /** A day of a month, of every year. */
  class PlainMonthDay {
    constructor(month: number, day: number, calendar?: string, referenceYear?: number);
    static from(value: Like<PlainMonthDay | PlainDate | PlainDateTime | ZonedDateTime, DateFields & { calendar?: string }>, options?: Overflow): PlainMonthDay;
    readonly calendarId: string;
    readonly monthCode: string;
    readonly day: number;
    with(fields: DateFields, options?: Overflow): PlainMonthDay;
    equals(other: Like<PlainMonthDay, DateFields>): boolean;
    toPlainDate(fields: { year?: number; era?: string; eraYear?: number }): PlainDate;
    toString(options?: CalendarText): string;
    toJSON(): string;
    toLocaleString(locales?: Locales, options?: object): string;
    valueOf(): never;
    readonly [Symbol.toStringTag]: "Temporal.PlainMonthDay";
  }

  /** A length of time in units that are kept apart: 90 minutes are not an hour and a half until `round` says so. */
  class Duration {
    constructor(years?: number, months?: number, weeks?: number, days?: number, hours?: number, minutes?: number, seconds?: number, milliseconds?: number, microseconds?: number, nanoseconds?: number);
    static from(value: DurationLike): Duration;
    static compare(one: DurationLike, two: DurationLike, options?: { relativeTo?: RelativeTo }): -1 | 0 | 1;
    readonly years: number;
    readonly months: number;
    readonly weeks: number;
    readonly days: number;
    readonly hours: number;
    readonly minutes: number;
    readonly seconds: number;
    readonly milliseconds: number;
    readonly microseconds: number;
    readonly nanoseconds: number;
    readonly sign: -1 | 0 | 1;
    /** Whether every unit is 0. */
    readonly blank: boolean;
    with(fields: DurationFields): Duration;
    negated(): Duration;
    abs(): Duration;
    add(other: DurationLike): Duration;
    subtract(other: DurationLike): Duration;
    round(to: Plural<DateUnit | TimeUnit> | (Difference<DateUnit | TimeUnit> & { relativeTo?: RelativeTo })): Duration;
    total(of: Plural<DateUnit | TimeUnit> | { unit: Plural<DateUnit | TimeUnit>; relativeTo?: RelativeTo }): number;
    toString(options?: TimeText): string;
    toJSON(): string;
    toLocaleString(locales?: Locales, options?: object): string;
    valueOf(): never;
    readonly [Symbol.toStringTag]: "Temporal.Duration";
  }

  /** The run's clock, in whole milliseconds. Without an argument the zone is that of the schedule. */
  const Now: {
    timeZoneId(): string;
    instant(): Instant;
    zonedDateTimeISO(timeZone?: string | ZonedDateTime): ZonedDateTime;
    plainDateTimeISO(timeZone?: string | ZonedDateTime): PlainDateTime;
    plainDateISO(timeZone?: string | ZonedDateTime): PlainDate;
    plainTimeISO(timeZone?: string | ZonedDateTime): PlainTime;
    readonly [Symbol.toStringTag]: "Temporal.Now";
  };
}

interface Date {
  toTemporalInstant(): Temporal.Instant;
}
