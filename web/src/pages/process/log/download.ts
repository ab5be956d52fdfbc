/** Saves the log as it is, byte for byte: to a file as it comes where the browser can, else in parts of its own storage. */
import { request, withQuery } from "../../../api/http";
import { logPath } from "../../../api/operations";

const PART = 16 * 1024 * 1024;

interface FileHandle {
  createWritable(): Promise<{ write(data: Blob): Promise<void>; close(): Promise<void> }>;
}
type Picker = (options: { suggestedName: string }) => Promise<FileHandle>;

async function* parts(id: string, stream: string): AsyncGenerator<Blob> {
  let from = 0;
  for (;;) {
    const answer = await request(withQuery(logPath(id), { from, bytes: PART, stream, view: "raw" }), {
      headers: { Accept: "application/octet-stream" },
    });
    const part = await answer.blob();
    const next = Number(answer.headers.get("holdfast-next"));
    if (part.size === 0 || next <= from) return;
    from = next;
    yield part;
  }
}

export async function download(id: string, stream: string, name: string): Promise<void> {
  const picker = (globalThis as { showSaveFilePicker?: Picker }).showSaveFilePicker;
  if (picker) {
    const handle = await picker({ suggestedName: name }).catch(() => null);
    if (handle === null) return;
    const file = await handle.createWritable();
    for await (const part of parts(id, stream)) await file.write(part);
    return file.close();
  }
  const kept: Blob[] = [];
  for await (const part of parts(id, stream)) kept.push(part);
  save(new Blob(kept), name);
}

export function save(data: Blob, name: string): void {
  const url = URL.createObjectURL(data);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
