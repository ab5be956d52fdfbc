/** Records of the API, by the names that the rest of the page uses; generated from the OpenAPI document. */
import type { components } from "../../dist/schema";

type Schemas = components["schemas"];

export type Plugin = Schemas["Plugin"];
export type Theme = Schemas["Theme"];
export type Process = Schemas["Process"];
export type Agent = Schemas["Agent"];
export type AgentLogEntry = Schemas["AgentLogEntry"];
export type Approval = Schemas["Approval"];
export type Backend = Schemas["Backend"];
export type KillResult = Schemas["KillResult"];
export type Match = Schemas["Match"];
export type Notification = Schemas["Notification"];
export type Screen = Schemas["Screen"];
export type Session = Schemas["Session"];
export type Sink = Schemas["Sink"];
export type SinkResult = Schemas["SinkResult"];
export type DeadLetter = Schemas["DeadLetter"];
export type TimeEntry = Schemas["TimeEntry"];
export type Top = Schemas["Top"];
export type Tree = Schemas["Tree"];

/** An event of the stream; fields beyond the envelope depend on its topic. */
export interface HoldfastEvent {
  type: string;
  ts: number;
  src: string;
  seq?: number;
  id?: string;
  session?: string;
  name?: string | null;
  [field: string]: unknown;
}

export interface EventPage {
  events: HoldfastEvent[];
  next: number;
  newest: number;
  oldest: number;
}
