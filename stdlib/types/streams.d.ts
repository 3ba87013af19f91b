// The Streams standard: ReadableStream, WritableStream and TransformStream with what belongs to them.

interface QueuingStrategy<T = any> {
  highWaterMark?: number;
  size?(chunk: T): number;
}
declare class CountQueuingStrategy implements QueuingStrategy {
  constructor(init: { highWaterMark: number });
  readonly highWaterMark: number;
  readonly size: () => 1;
}
declare class ByteLengthQueuingStrategy implements QueuingStrategy<ArrayBufferView> {
  constructor(init: { highWaterMark: number });
  readonly highWaterMark: number;
  readonly size: (chunk: ArrayBufferView) => number;
}
interface UnderlyingByteSource {
  type: "bytes";
  autoAllocateChunkSize?: number;
  start?(controller: ReadableByteStreamController): unknown;
  pull?(controller: ReadableByteStreamController): unknown;
  cancel?(reason?: unknown): unknown;
}
interface UnderlyingSource<T = any> {
  type?: undefined;
  start?(controller: ReadableStreamDefaultController<T>): unknown;
  pull?(controller: ReadableStreamDefaultController<T>): unknown;
  cancel?(reason?: unknown): unknown;
}
interface UnderlyingSink<T = any> {
  start?(controller: WritableStreamDefaultController): unknown;
  write?(chunk: T, controller: WritableStreamDefaultController): unknown;
  close?(): unknown;
  abort?(reason?: unknown): unknown;
}
interface Transformer<I = any, O = any> {
  start?(controller: TransformStreamDefaultController<O>): unknown;
  transform?(chunk: I, controller: TransformStreamDefaultController<O>): unknown;
  flush?(controller: TransformStreamDefaultController<O>): unknown;
  cancel?(reason?: unknown): unknown;
}
interface PipeOptions {
  preventClose?: boolean;
  preventAbort?: boolean;
  preventCancel?: boolean;
  signal?: AbortSignal;
}

declare class ReadableStreamDefaultController<T = any> {
  private constructor();
  readonly desiredSize: number | null;
  enqueue(chunk: T): void;
  close(): void;
  error(reason?: unknown): void;
}
declare class ReadableByteStreamController {
  private constructor();
  readonly byobRequest: ReadableStreamBYOBRequest | null;
  readonly desiredSize: number | null;
  enqueue(chunk: ArrayBufferView): void;
  close(): void;
  error(reason?: unknown): void;
}
declare class ReadableStreamBYOBRequest {
  private constructor();
  readonly view: ArrayBufferView | null;
  respond(bytesWritten: number): void;
  respondWithNewView(view: ArrayBufferView): void;
}
declare class ReadableStreamBYOBReader {
  constructor(stream: ReadableStream<Uint8Array>);
  readonly closed: Promise<undefined>;
  read<V extends ArrayBufferView>(view: V, options?: { min?: number }): Promise<{ value: V; done: false } | { value: V | undefined; done: true }>;
  cancel(reason?: unknown): Promise<void>;
  releaseLock(): void;
}
declare class ReadableStreamDefaultReader<T = any> {
  constructor(stream: ReadableStream<T>);
  readonly closed: Promise<undefined>;
  read(): Promise<{ value: T; done: false } | { value: undefined; done: true }>;
  cancel(reason?: unknown): Promise<void>;
  releaseLock(): void;
}
declare class ReadableStream<T = any> implements AsyncIterable<T> {
  constructor(source: UnderlyingByteSource, strategy?: { highWaterMark?: number });
  constructor(source?: UnderlyingSource<T>, strategy?: QueuingStrategy<T>);
  static from<T>(items: Iterable<T> | AsyncIterable<T>): ReadableStream<T>;
  readonly locked: boolean;
  cancel(reason?: unknown): Promise<void>;
  getReader(options: { mode: "byob" }): ReadableStreamBYOBReader;
  getReader(options?: { mode?: undefined }): ReadableStreamDefaultReader<T>;
  pipeThrough<O>(pair: { readable: ReadableStream<O>; writable: WritableStream<T> }, options?: PipeOptions): ReadableStream<O>;
  pipeTo(target: WritableStream<T>, options?: PipeOptions): Promise<void>;
  tee(): [ReadableStream<T>, ReadableStream<T>];
  values(options?: { preventCancel?: boolean }): AsyncIterableIterator<T>;
  [Symbol.asyncIterator](): AsyncIterableIterator<T>;
}
declare class WritableStreamDefaultController {
  private constructor();
  readonly signal: AbortSignal;
  error(reason?: unknown): void;
}
declare class WritableStreamDefaultWriter<T = any> {
  constructor(stream: WritableStream<T>);
  readonly closed: Promise<undefined>;
  readonly ready: Promise<undefined>;
  readonly desiredSize: number | null;
  write(chunk: T): Promise<void>;
  close(): Promise<void>;
  abort(reason?: unknown): Promise<void>;
  releaseLock(): void;
}
declare class WritableStream<T = any> {
  constructor(sink?: UnderlyingSink<T>, strategy?: QueuingStrategy<T>);
  readonly locked: boolean;
  getWriter(): WritableStreamDefaultWriter<T>;
  abort(reason?: unknown): Promise<void>;
  close(): Promise<void>;
}
declare class TransformStreamDefaultController<O = any> {
  private constructor();
  readonly desiredSize: number | null;
  enqueue(chunk: O): void;
  error(reason?: unknown): void;
  terminate(): void;
}
/** Text of bytes that arrive in pieces: `for await (const text of answer.body.pipeThrough(new TextDecoderStream()))`. */
declare class TextDecoderStream {
  constructor(label?: string, options?: { fatal?: boolean; ignoreBOM?: boolean });
  readonly readable: ReadableStream<string>;
  readonly writable: WritableStream<Uint8Array | ArrayBuffer>;
  readonly encoding: string;
  readonly fatal: boolean;
  readonly ignoreBOM: boolean;
}
/** Bytes, as UTF-8, of text that arrives in pieces. */
declare class TextEncoderStream {
  readonly readable: ReadableStream<Uint8Array>;
  readonly writable: WritableStream<string>;
  readonly encoding: string;
}
declare class TransformStream<I = any, O = any> {
  constructor(transformer?: Transformer<I, O>, writing?: QueuingStrategy<I>, reading?: QueuingStrategy<O>);
  readonly readable: ReadableStream<O>;
  readonly writable: WritableStream<I>;
}
