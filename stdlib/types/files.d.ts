// Blob, File and FormData: bytes with a type, and the fields of a form.

type BlobPart = string | ArrayBuffer | ArrayBufferView | Blob;

declare class Blob {
  constructor(parts?: Iterable<BlobPart>, options?: { type?: string; endings?: "transparent" });
  readonly size: number;
  readonly type: string;
  slice(start?: number, end?: number, type?: string): Blob;
  text(): Promise<string>;
  bytes(): Promise<Uint8Array>;
  arrayBuffer(): Promise<ArrayBuffer>;
  stream(): ReadableStream<Uint8Array>;
}
declare class File extends Blob {
  constructor(parts: Iterable<BlobPart>, name: string, options?: { type?: string; lastModified?: number; endings?: "transparent" });
  readonly name: string;
  readonly lastModified: number;
}
declare class FormData implements Iterable<[string, string | File]> {
  constructor();
  append(name: string, value: string | Blob, fileName?: string): void;
  delete(name: string): void;
  get(name: string): string | File | null;
  getAll(name: string): (string | File)[];
  has(name: string): boolean;
  set(name: string, value: string | Blob, fileName?: string): void;
  forEach(callback: (value: string | File, name: string, all: FormData) => void, self?: unknown): void;
  entries(): IterableIterator<[string, string | File]>;
  keys(): IterableIterator<string>;
  values(): IterableIterator<string | File>;
  [Symbol.iterator](): IterableIterator<[string, string | File]>;
}
