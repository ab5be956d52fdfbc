import { createContext, useContext } from "react";
import type { DashboardSession } from "../api/session";

export const SessionContext = createContext<DashboardSession | null>(null);
export const useSession = () => useContext(SessionContext);
/** Whether this link may only look. */
export const useReadOnly = () => useSession()?.read_only ?? false;
