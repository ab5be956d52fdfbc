/** What scripts of plugins find in `window`: the registry and the SDK, under our names and those of hermes-agent. */
import * as React from "react";
import { withQuery, type Query } from "../api/http";
import * as operations from "../api/operations";
import { authHeaders, openSocket } from "../api/session";
import type { HoldfastEvent } from "../api/types";
import { EventFeed } from "../feed/events";
import { ago } from "../model/format";
import * as parts from "./components";
import { register, registerSlot } from "./registry";

export const SDK_VERSION = "1.1.0";

const { cn, ...components } = parts;

function own(address: string | URL): URL {
  const url = new URL(address, location.href);
  if (url.host !== location.host) throw new Error(`Plugins can only ask this daemon, not ${url.host}.`);
  return url;
}

async function authedFetch(address: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  for (const [name, value] of Object.entries(authHeaders())) headers.set(name, value);
  return fetch(own(address), { ...init, headers });
}

/** As plugins know it: an error is `STATUS: TEXT`. */
async function fetchJSON(address: string, init: RequestInit = {}): Promise<unknown> {
  const answer = await authedFetch(address, init);
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${answer.status}: ${detailOf(text)}`);
  return text ? JSON.parse(text) : null;
}

function detailOf(text: string): string {
  try {
    return (JSON.parse(text) as { detail?: string }).detail ?? text;
  } catch {
    return text;
  }
}

function buildWsUrl(path: string, query: Query = {}): Promise<string> {
  const url = own(withQuery(path, query));
  url.protocol = location.protocol === "https:" ? "wss:" : "ws:";
  return Promise.resolve(url.href);
}

/** Calls back with each event from now on, also after the daemon was away. Returns what ends it. */
function subscribe(pattern: string, callback: (event: HoldfastEvent) => void): () => void {
  const feed = new EventFeed(pattern, {
    events: (batch) => {
      for (const event of batch) {
        try {
          callback(event);
        } catch (failed) {
          console.error(failed);
        }
      }
    },
    open: () => undefined,
    closed: () => undefined,
  });
  feed.start();
  return () => feed.stop();
}

const hooks = {
  useState: React.useState,
  useEffect: React.useEffect,
  useCallback: React.useCallback,
  useMemo: React.useMemo,
  useRef: React.useRef,
  useContext: React.useContext,
  createContext: React.createContext,
};

const timeAgo = (time: number) => ago(time, Date.now() / 1000);

const sdk = {
  sdkVersion: SDK_VERSION,
  React,
  hooks,
  api: operations,
  fetchJSON,
  authedFetch,
  buildWsUrl,
  components,
  utils: { cn, timeAgo, isoTimeAgo: (iso: string) => timeAgo(Date.parse(iso) / 1000) },
  events: { subscribe },
};

const registry = { register, registerSlot };

/** A WebSocket to this daemon that names no subprotocol gets those that let it in. */
const SignedSocket = new Proxy(WebSocket, {
  construct(target, [address, protocols]: [string | URL, (string | string[])?]) {
    const url = new URL(address, location.href);
    if (url.host !== location.host || protocols !== undefined) return new target(address, protocols);
    return openSocket(url.pathname + url.search, target);
  },
});

let isInstalled = false;

export function installSdk(): void {
  if (isInstalled) return;
  isInstalled = true;
  Object.assign(window, {
    __HOLDFAST_PLUGINS__: registry,
    __HOLDFAST_PLUGIN_SDK__: sdk,
    __HERMES_PLUGINS__: registry,
    __HERMES_PLUGIN_SDK__: sdk,
    WebSocket: SignedSocket,
  });
}
