
"use strict";
(() => {
  const said = document.getElementById("said");
  const numeric = (text) => text !== "" && Number.isFinite(Number(text));

  // Sorting: a button in every column's heading. A cell without a value stays at the end.
  function sort(table, column, direction) {
    const body = table.tBodies[0];
    const key = (row) => {
      const cell = row.cells[column];
      return cell.tagName === "TH" ? cell.textContent : cell.dataset.value ?? "";
    };
    const compare = (a, b) => {
      if (a === "" || b === "") return (a === "") - (b === "");
      const order = numeric(a) && numeric(b) ? Number(a) - Number(b) : a.localeCompare(b, "en", { numeric: true });
      return direction * order;
    };
    const rows = [...body.rows].map((row) => [key(row), row]);
    rows.sort(([a], [b]) => compare(a, b)).forEach(([, row]) => body.append(row));
  }
  for (const table of document.querySelectorAll("table")) {
    const heads = [...table.tHead.rows[0].cells];
    if (table.tBodies[0].rows.length < 2) continue;
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const before = head.getAttribute("aria-sort");
        const up = before ? before === "descending" : column === 0 || head.hasAttribute("data-up");
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        sort(table, column, up ? 1 : -1);
        said.textContent = `Sorted by ${button.textContent}, ${up ? "ascending" : "descending"}.`;
      });
    });
  }

  // Shadows: a frame knows on which sides its table or figure goes on.
  function shade(scroll) {
    const more = {
      left: scroll.scrollLeft > 1,
      right: scroll.scrollLeft + scroll.clientWidth < scroll.scrollWidth - 1,
      down: scroll.scrollTop + scroll.clientHeight < scroll.scrollHeight - 1,
    };
    for (const [side, is] of Object.entries(more)) scroll.parentElement.toggleAttribute(`data-${side}`, is);
  }
  const watch = new ResizeObserver((seen) => seen.forEach((one) => shade(one.target.closest(".scroll"))));
  for (const scroll of document.querySelectorAll(".scroll")) {
    scroll.addEventListener("scroll", () => shade(scroll), { passive: true });
    watch.observe(scroll);
    watch.observe(scroll.firstElementChild); // a table narrows when columns hide
  }

  // Links into what is folded unfold it.
  function reveal() {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const folded = target?.closest("details:not([open])");
    if (!folded) return;
    folded.open = true;
    folded.scrollIntoView();
  }
  window.addEventListener("hashchange", reveal);
  document.addEventListener("click", (event) => { // the address may be the same as before
    if (event.target.closest?.('a[href^="#"]')) setTimeout(reveal);
  });
  reveal();

  // Choosing methods: the rows and columns of hidden methods hide.
  const choose = document.getElementById("choose");
  if (!choose) return;
  choose.hidden = false;
  const boxes = [...choose.querySelectorAll("input")];

  function follow() {
    const hidden = new Set(boxes.filter((box) => !box.checked).map((box) => box.value));
    for (const node of document.querySelectorAll("[data-method]")) {
      node.hidden = hidden.has(node.dataset.method) || hidden.has(node.dataset.other);
    }
    said.textContent = `${boxes.length - hidden.size} of ${boxes.length} methods shown.`;
  }
  for (const button of choose.querySelectorAll("[data-show]")) {
    button.addEventListener("click", () => {
      const show = button.dataset.show;
      boxes.forEach((box) => { box.checked = show === "all" || (show === "subject" && "subject" in box.dataset); });
      follow();
    });
  }
  boxes.forEach((box) => {
    box.checked = true; // browsers remember boxes; the page starts with all methods
    box.addEventListener("change", follow);
  });
})();
