import { createRoot } from "react-dom/client";
import "./styles/base.css";
import "./styles/toasts.css";
import "./styles/shell.css";
import "./styles/controls.css";
import "./styles/pages.css";
import "./styles/process.css";
import "./styles/log.css";
import "./styles/lists.css";
import "./styles/themes.css";
import "./app/theme";
import { Gate } from "./app/Gate";

createRoot(document.getElementById("root")!).render(<Gate />);
