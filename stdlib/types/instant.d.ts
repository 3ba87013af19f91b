// Instant: a Temporal.Instant that also knows the schedule's time zone.

/** A length of time, as Temporal takes it: an object, ISO 8601 text such as P1DT2H, or a Temporal.Duration. */
type Amount = Temporal.DurationLike;

/** The global Instant, for the types of Temporal. */
type ScriptInstant = Instant;

declare class Instant {
  /** Takes nanoseconds since 1970; for milliseconds, write Instant.fromEpochMilliseconds. */
  constructor(epochNanoseconds: bigint);
  /** Converts an Instant, a Temporal.Instant or ZonedDateTime, a Date, or ISO 8601 text with an offset. */
  static from(value: Instant | Temporal.Instant | Temporal.ZonedDateTime | Date | string): Instant;
  static fromEpochMilliseconds(milliseconds: number): Instant;
  static fromEpochNanoseconds(nanoseconds: bigint): Instant;
  /** -1, 0 or 1, for sort. */
  static compare(one: Instant | Temporal.Instant | Date | string, two: Instant | Temporal.Instant | Date | string): number;
  readonly epochMilliseconds: number;
  readonly epochNanoseconds: bigint;
  /** Adds a length of time; days and longer units are counted in the schedule's time zone. */
  add(duration: Amount): Instant;
  /** Subtracts a length of time; days and longer units are counted in the schedule's time zone. */
  subtract(duration: Amount): Instant;
  /** Time from the other instant to this one. */
  since(other: Instant | Temporal.Instant | Date | string, options?: object): Temporal.Duration;
  /** Time from this instant to the other one. */
  until(other: Instant | Temporal.Instant | Date | string, options?: object): Temporal.Duration;
  round(to: string | object): Instant;
  equals(other: Instant | Temporal.Instant | Date | string): boolean;
  /** Date and time in a time zone, without one in that of the schedule: its year, dayOfWeek, startOfDay(), toPlainDate(). */
  toZonedDateTimeISO(timeZone?: string): Temporal.ZonedDateTime;
  toLocaleString(locales?: string | string[], options?: Intl.DateTimeFormatOptions): string;
  /** UTC, without trailing zeros. */
  toString(options?: object): string;
  toJSON(): string;
  /** Throws: compare instants with Temporal.Instant.compare, or by epochMilliseconds. */
  valueOf(): never;
}

/** Instant at which this run started. */
declare const now: Instant;
