/** An error of the daemon: what is wrong, and the next step. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly next: string,
    readonly data: Record<string, unknown> | null = null,
  ) {
    super(message);
  }
}

export async function problemOf(answer: Response): Promise<Problem> {
  try {
    const body = (await answer.json()) as {
      code?: string;
      detail?: string;
      title?: string;
      next?: string;
      data?: Record<string, unknown>;
    };
    return new Problem(
      answer.status,
      body.code ?? "failed",
      body.detail ?? body.title ?? answer.statusText,
      body.next ?? "",
      body.data ?? null,
    );
  } catch {
    return new Problem(answer.status, "failed", `the daemon answered ${answer.status}`, "try again");
  }
}

/** A sentence for the user: what is wrong, and what to do. */
export function sentenceOf(error: unknown): string {
  if (error instanceof Problem) {
    const first = error.message.charAt(0).toUpperCase() + error.message.slice(1);
    return error.next ? `${first}. Next: ${error.next}` : `${first}.`;
  }
  if (error instanceof TypeError) return "The daemon does not answer. Next: holdfast daemon start";
  return error instanceof Error ? error.message : String(error);
}
