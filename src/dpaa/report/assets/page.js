"use strict";
(() => {
  const root = document.documentElement;

  // Light and dark: the system's wish, until the button says otherwise.
  const button = document.getElementById("theme");
  const wish = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : wish.matches);
  const label = () => {
    button.textContent = isDark() ? "Light" : "Dark";
    button.setAttribute("aria-pressed", String(isDark()));
    button.setAttribute("aria-label", isDark() ? "Switch to light colours" : "Switch to dark colours");
  };
  try {
    const kept = localStorage.getItem("dpaa-theme");
    if (kept === "dark" || kept === "light") root.dataset.theme = kept;
  } catch { /* a page from a file may not be allowed to keep anything */ }
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    try { localStorage.setItem("dpaa-theme", root.dataset.theme); } catch { /* as above */ }
    label();
  });
  wish.addEventListener("change", label);
  label();

  // Tables: a click, Enter or Space on a column's name sorts by it; numbers by value, missing ones last.
  const key = (row, place) => {
    const cell = row.cells[place];
    return cell.dataset.by ?? cell.textContent.trim();
  };
  const compare = (a, b) => {
    const x = Number(a), y = Number(b);
    if (a !== "" && b !== "" && !Number.isNaN(x) && !Number.isNaN(y)) return x - y;
    return a.localeCompare(b, undefined, { numeric: true });
  };
  for (const table of document.querySelectorAll("table[data-sortable]")) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, place) => head.querySelector("button").addEventListener("click", () => {
      const first = head.classList.contains("number") ? "descending" : "ascending";
      const other = first === "descending" ? "ascending" : "descending";
      const order = head.getAttribute("aria-sort") === first ? other : first;
      for (const each of heads) each.setAttribute("aria-sort", each === head ? order : "none");
      const sign = order === "ascending" ? 1 : -1;
      const rows = [...table.tBodies[0].rows].map((row) => [key(row, place), row]);
      rows.sort(([a], [b]) => (a === "" || b === "" ? (a === "") - (b === "") : sign * compare(a, b)));
      table.tBodies[0].append(...rows.map(([, row]) => row));
    }));
  }

  // Figures: saved as they are seen, colours written out, on the page's ground.
  const standalone = (figure) => {
    const copy = figure.querySelector(".chart svg").cloneNode(true);
    const width = Number(copy.getAttribute("width")), height = Number(copy.getAttribute("height"));
    const ground = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    ground.setAttribute("width", width);
    ground.setAttribute("height", height);
    ground.setAttribute("fill", "var(--paper)");
    copy.prepend(ground);
    for (const mark of copy.querySelectorAll("[data-tip]")) mark.removeAttribute("data-tip");
    const style = getComputedStyle(root);
    const text = new XMLSerializer().serializeToString(copy)
      .replace(/var\((--[a-z0-9]+)\)/g, (_, name) => style.getPropertyValue(name).trim());
    return { text, width, height };
  };
  const download = (blob, name) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  };
  const savePng = ({ text, width, height }, name) => {
    const image = new Image();
    image.onload = () => {
      const canvas = document.createElement("canvas");
      canvas.width = 3 * width;
      canvas.height = 3 * height;
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((blob) => download(blob, name), "image/png");
    };
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  };
  document.addEventListener("click", (event) => {
    const save = event.target.closest("[data-save]");
    if (!save) return;
    const figure = save.closest("figure"), drawn = standalone(figure);
    const name = `${figure.dataset.name}.${save.dataset.save}`;
    if (save.dataset.save === "png") savePng(drawn, name);
    else download(new Blob([drawn.text], { type: "image/svg+xml" }), name);
  });

  // Values of marks beside the pointer.
  const tip = document.getElementById("tip");
  document.addEventListener("pointerover", (event) => {
    const mark = event.target.closest?.("[data-tip]");
    tip.hidden = !mark;
    if (mark) tip.textContent = mark.dataset.tip;
  });
  document.addEventListener("pointermove", (event) => {
    if (tip.hidden) return;
    const box = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(4, Math.min(event.clientX + 12, innerWidth - box.width - 6))}px`;
    tip.style.top = `${event.clientY + box.height + 24 > innerHeight ? event.clientY - box.height - 10 : event.clientY + 16}px`;
  });

  // Tables wider than the screen say so, and fade where there is more.
  const watch = (frame) => {
    const scroll = frame.querySelector(".scroll"), table = scroll.querySelector("table");
    const words = document.createElement("p");
    words.className = "more";
    words.textContent = "Wider than the screen: scroll sideways for the other columns.";
    words.hidden = true;
    frame.before(words);
    const look = () => {
      const room = scroll.scrollWidth - scroll.clientWidth;
      const left = scroll.scrollLeft > 1, right = scroll.scrollLeft < room - 1;
      frame.dataset.more = left && right ? "both" : right ? "right" : left ? "left" : "";
      words.hidden = room <= 1;
      table.classList.toggle("moved", left);
    };
    scroll.addEventListener("scroll", look, { passive: true });
    new ResizeObserver(look).observe(scroll);
  };
  for (const frame of document.querySelectorAll(".table")) watch(frame);

  // A link into a closed chapter opens it.
  const open = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const folded = target?.closest("details") ?? target?.querySelector(":scope > details.chapter");
    if (folded && !folded.open) { folded.open = true; target.scrollIntoView(); }
  };
  addEventListener("hashchange", open);
  open();

  // On paper everything is open.
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("details:not([open])")];
    for (const part of closed) part.open = true;
  });
  addEventListener("afterprint", () => { for (const part of closed) part.open = false; });
})();
