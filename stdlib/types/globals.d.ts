// Globals of a script in addition to those of ECMAScript. Capabilities have their own files.

interface Console {
  debug(...values: unknown[]): void;
  log(...values: unknown[]): void;
  info(...values: unknown[]): void;
  warn(...values: unknown[]): void;
  error(...values: unknown[]): void;
  /** Writes the values and the stack, at level debug. */
  trace(...values: unknown[]): void;
  dir(value: unknown): void;
  dirxml(...values: unknown[]): void;
  /** Ends all groups; lines that are written stay. */
  clear(): void;
  /** Writes rows as a table: an array of objects, or an object of objects; `columns` names those to show. */
  table(rows: unknown, columns?: Iterable<string>): void;
  assert(condition: unknown, ...values: unknown[]): void;
  count(label?: string): void;
  countReset(label?: string): void;
  time(label?: string): void;
  timeLog(label?: string, ...values: unknown[]): void;
  timeEnd(label?: string): void;
  group(...values: unknown[]): void;
  groupCollapsed(...values: unknown[]): void;
  groupEnd(): void;
}
declare const console: Console;

/** Timers run while the script's promise is pending, within the run's wall time limit. */
declare function setTimeout<A extends unknown[]>(callback: (...values: A) => unknown, milliseconds?: number, ...values: A): number;
declare function setInterval<A extends unknown[]>(callback: (...values: A) => unknown, milliseconds?: number, ...values: A): number;
declare function clearTimeout(id?: number): void;
declare function clearInterval(id?: number): void;
declare function queueMicrotask(callback: () => void): void;
/** Ends the run with the error, as one that nothing caught. */
declare function reportError(error: unknown): void;
declare const performance: {
  /** Whole milliseconds since the run began. */
  now(): number;
  readonly timeOrigin: number;
  toJSON(): { timeOrigin: number };
};

/** A deep copy of plain data, dates, expressions, maps, sets, buffers, blobs and errors; with cycles, but without functions. */
declare function structuredClone<T>(value: T, options?: { transfer?: ArrayBuffer[] }): T;
declare function atob(text: string): string;
declare function btoa(text: string): string;

declare class TextEncoder {
  readonly encoding: "utf-8";
  encode(text?: string): Uint8Array;
  encodeInto(text: string, bytes: Uint8Array): { read: number; written: number };
}
declare class TextDecoder {
  /** `latin1` is windows-1252, as everywhere on the web. Other labels than those of these four encodings are refused. */
  constructor(label?: "utf-8" | "utf-16le" | "utf-16be" | "latin1" | string, options?: { fatal?: boolean; ignoreBOM?: boolean });
  readonly encoding: "utf-8" | "utf-16le" | "utf-16be" | "windows-1252";
  readonly fatal: boolean;
  readonly ignoreBOM: boolean;
  decode(bytes?: ArrayBuffer | ArrayBufferView, options?: { stream?: boolean }): string;
}

declare class URLSearchParams implements Iterable<[string, string]> {
  constructor(init?: string | Iterable<[string, string]> | Record<string, string>);
  readonly size: number;
  append(name: string, value: string): void;
  delete(name: string, value?: string): void;
  get(name: string): string | null;
  getAll(name: string): string[];
  has(name: string, value?: string): boolean;
  set(name: string, value: string): void;
  sort(): void;
  forEach(callback: (value: string, name: string, all: URLSearchParams) => void): void;
  entries(): IterableIterator<[string, string]>;
  keys(): IterableIterator<string>;
  values(): IterableIterator<string>;
  [Symbol.iterator](): IterableIterator<[string, string]>;
  toString(): string;
}
declare class URL {
  constructor(text: string | URL, base?: string | URL);
  static canParse(text: string | URL, base?: string | URL): boolean;
  static parse(text: string | URL, base?: string | URL): URL | null;
  href: string;
  readonly origin: string;
  protocol: string;
  username: string;
  password: string;
  host: string;
  hostname: string;
  port: string;
  pathname: string;
  search: string;
  readonly searchParams: URLSearchParams;
  hash: string;
  toString(): string;
  toJSON(): string;
}

type URLPatternPart = "protocol" | "username" | "password" | "hostname" | "port" | "pathname" | "search" | "hash";
type URLPatternInput = string | URL | (Partial<Record<URLPatternPart, string>> & { baseURL?: string });
interface URLPatternPartResult {
  input: string;
  groups: Record<string, string | undefined>;
}
declare class URLPattern {
  static compareComponent(part: URLPatternPart, left: URLPattern, right: URLPattern): -1 | 0 | 1;
  constructor(input?: URLPatternInput, base?: string | URL | { ignoreCase?: boolean }, options?: { ignoreCase?: boolean });
  readonly protocol: string;
  readonly username: string;
  readonly password: string;
  readonly hostname: string;
  readonly port: string;
  readonly pathname: string;
  readonly search: string;
  readonly hash: string;
  readonly hasRegExpGroups: boolean;
  test(input?: URLPatternInput, base?: string | URL): boolean;
  exec(input?: URLPatternInput, base?: string | URL): (Record<URLPatternPart, URLPatternPartResult> & { inputs: URLPatternInput[] }) | null;
}

declare class Event {
  constructor(type: string, options?: { bubbles?: boolean; cancelable?: boolean; composed?: boolean });
  readonly type: string;
  readonly target: EventTarget | null;
  readonly currentTarget: EventTarget | null;
  readonly cancelable: boolean;
  readonly bubbles: boolean;
  readonly composed: boolean;
  /** 2 while the event is dispatched, otherwise 0. */
  readonly eventPhase: number;
  readonly isTrusted: false;
  readonly defaultPrevented: boolean;
  readonly timeStamp: number;
  composedPath(): EventTarget[];
  preventDefault(): void;
  stopPropagation(): void;
  stopImmediatePropagation(): void;
}
declare class CustomEvent<T = unknown> extends Event {
  constructor(type: string, options?: { bubbles?: boolean; cancelable?: boolean; composed?: boolean; detail?: T });
  readonly detail: T;
}
type Listener = ((event: Event) => void) | { handleEvent(event: Event): void };
declare class EventTarget {
  addEventListener(type: string, listener: Listener | null, options?: boolean | { capture?: boolean; once?: boolean; passive?: boolean; signal?: AbortSignal }): void;
  removeEventListener(type: string, listener: Listener | null, options?: boolean | { capture?: boolean }): void;
  dispatchEvent(event: Event): boolean;
}
declare class AbortSignal extends EventTarget {
  private constructor();
  static abort(reason?: unknown): AbortSignal;
  static timeout(milliseconds: number): AbortSignal;
  static any(signals: Iterable<AbortSignal>): AbortSignal;
  readonly aborted: boolean;
  readonly reason: unknown;
  onabort: ((event: Event) => void) | null;
  throwIfAborted(): void;
}
declare class AbortController {
  readonly signal: AbortSignal;
  abort(reason?: unknown): void;
}
declare class DOMException extends Error {
  constructor(message?: string, name?: string);
  readonly code: number;
}

// Of ECMAScript, for editors whose own declarations do not have them yet.
interface RegExpConstructor {
  escape(text: string): string;
}
interface Math {
  sumPrecise(values: Iterable<number>): number;
}
interface Uint8ArrayConstructor {
  fromBase64(text: string, options?: { alphabet?: "base64" | "base64url"; lastChunkHandling?: "loose" | "strict" | "stop-before-partial" }): Uint8Array<ArrayBuffer>;
  fromHex(text: string): Uint8Array<ArrayBuffer>;
}
interface Uint8Array<TArrayBuffer extends ArrayBufferLike = ArrayBufferLike> {
  toBase64(options?: { alphabet?: "base64" | "base64url"; omitPadding?: boolean }): string;
  toHex(): string;
}
