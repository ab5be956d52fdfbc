import { memo, useMemo, type ReactNode } from "react";
import { copy } from "../app/toasts";
import { parseMarkdown, type Block, type Inline } from "../model/markdown";
import "../styles/markdown.css";

/** Text of a model. `level`: of the heading above it. */
export const Markdown = memo(function Markdown({ text, level = 3 }: { text: string; level?: number }) {
  const blocks = useMemo(() => parseMarkdown(text), [text]);
  return <div className="markdown">{blocks.map((block, index) => drawBlock(block, index, level))}</div>;
});

function drawBlock(block: Block, key: number, level: number): ReactNode {
  switch (block.kind) {
    case "paragraph":
      return <p key={key}>{draw(block.parts)}</p>;
    case "heading": {
      const Heading = `h${Math.min(6, level + block.level)}` as "h4";
      return <Heading key={key}>{draw(block.parts)}</Heading>;
    }
    case "code":
      return <CodeBlock key={key} language={block.language} text={block.text} />;
    case "rule":
      return <hr key={key} />;
    case "quote":
      return <blockquote key={key}>{block.blocks.map((inner, index) => drawBlock(inner, index, level))}</blockquote>;
    case "list": {
      const items = block.items.map((item, index) => (
        <li key={index}>{item.map((inner, at) => drawItem(inner, at, level, item.length))}</li>
      ));
      return block.start === null ? <ul key={key}>{items}</ul> : <ol key={key} start={block.start}>{items}</ol>;
    }
    case "table":
      return (
        <div key={key} className="markdown-table" tabIndex={0} role="region" aria-label="Table">
          <table>
            <thead>
              <tr>{block.head.map((cell, index) => <th key={index} scope="col">{draw(cell)}</th>)}</tr>
            </thead>
            <tbody>
              {block.rows.map((row, index) => (
                <tr key={index}>{row.map((cell, at) => <td key={at}>{draw(cell)}</td>)}</tr>
              ))}
            </tbody>
          </table>
        </div>
      );
  }
}

/** The text of an item stands beside its mark, without a paragraph of its own. */
const drawItem = (block: Block, key: number, level: number, count: number): ReactNode =>
  block.kind === "paragraph" && (count === 1 || key === 0) ? <span key={key}>{draw(block.parts)}</span> : drawBlock(block, key, level);

function draw(parts: Inline[]): ReactNode[] {
  return parts.map((part, index) => {
    switch (part.kind) {
      case "text":
        return part.text;
      case "code":
        return <code key={index}>{part.text}</code>;
      case "break":
        return <br key={index} />;
      case "link":
        return (
          <a key={index} href={part.href} target="_blank" rel="noopener noreferrer">
            {draw(part.parts)}
          </a>
        );
      default: {
        const Wrap = part.kind;
        return <Wrap key={index}>{draw(part.parts)}</Wrap>;
      }
    }
  });
}

export function CodeBlock({ text, language = "", what = "the code" }: { text: string; language?: string; what?: string }) {
  return (
    <div className="code-block">
      <pre tabIndex={0} aria-label={language ? `Code, ${language}` : "Code"} role="group">
        <code>{text}</code>
      </pre>
      <button className="quiet code-copy" onClick={() => void copy(text, what)}>
        Copy
      </button>
    </div>
  );
}
