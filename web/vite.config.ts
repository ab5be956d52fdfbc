import { defineConfig } from "vite";

declare const process: { env: Record<string, string | undefined> };

// `npm run dev` speaks to a daemon as its owner: HOLDFAST_URL and HOLDFAST_TOKEN name it.
const daemon = process.env.HOLDFAST_URL ?? "http://127.0.0.1:7333";
const headers = { Authorization: `Bearer ${process.env.HOLDFAST_TOKEN ?? ""}`, Origin: daemon };

export default defineConfig({
  build: {
    outDir: "../src/holdfast/dashboard/static",
    emptyOutDir: true,
    target: "es2023",
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 600,
  },
  server: {
    proxy: { "/api": { target: daemon, ws: true, changeOrigin: true, headers } },
  },
});
