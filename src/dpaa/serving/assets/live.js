"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const root = document.documentElement;
  const K = 20;

  // ------------------------------------------------------------ text: ids and titles are untrusted

  const ACTS = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\uffff]/gu;
  const LONGEST = 80;
  const safe = (value) => String(value).replace(ACTS, (one) => "\\u" + one.codePointAt(0).toString(16).padStart(4, "0"));
  const shown = (value) => {
    const text = safe(value);
    return text.length <= LONGEST ? text : text.slice(0, LONGEST) + "…";
  };
  const make = (tag, className, text) => {
    const node = document.createElement(tag);
    if (className) node.className = className;
    if (text !== undefined) node.textContent = text;
    return node;
  };
  const whole = (value) => Math.round(value).toLocaleString("en");
  const percent = (value) => (value === null || value === undefined ? "–" : `${(100 * value).toFixed(1)}%`);
  const signed = (value) => (value === 0 ? "0" : `${value > 0 ? "+" : "−"}${Math.abs(value).toFixed(2)}`);

  // ------------------------------------------------------------ light and dark

  const wish = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : wish.matches);
  const label = () => {
    $("theme").textContent = isDark() ? "Light" : "Dark";
    $("theme").setAttribute("aria-pressed", String(isDark()));
    $("theme").setAttribute("aria-label", isDark() ? "Switch to light colours" : "Switch to dark colours");
  };
  const keep = (store, name, value) => { try { store().setItem(name, value); } catch { /* storage may be blocked */ } };
  const kept = (store, name) => { try { return store().getItem(name); } catch { return null; } };
  const theme = kept(() => localStorage, "dpaa-theme");
  if (theme === "dark" || theme === "light") root.dataset.theme = theme;
  $("theme").addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    keep(() => localStorage, "dpaa-theme", root.dataset.theme);
    label();
  });
  wish.addEventListener("change", label);
  label();

  // ------------------------------------------------------------ requests

  class Refused extends Error {}

  const service = () => {
    const get = async (path, parameters = {}, signal) => {
      const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value !== null && value !== undefined));
      const token = kept(() => sessionStorage, "dpaa-token");
      const headers = token ? { Authorization: `Bearer ${token}` } : {};
      const answer = await fetch(`${path}?${query}`, { headers, signal });
      const content = await answer.json();
      if (answer.status === 401) throw new Refused("token");
      if (!answer.ok) throw new Error(content.detail ?? "the service does not respond");
      return content;
    };
    const part = (id) => encodeURIComponent(id);
    return {
      about: () => get("about"),
      search: (kind, q) => get("search", { kind, q }).then((found) => found.results),
      user: (id) => get(`users/${part(id)}`),
      list: async (id, dial, rerank, signal) => {
        const found = await get(`recommend/${part(id)}`, { k: K, dial, rerank, explain: true }, signal);
        return found.items.map((one) => ({ ...one, interactions: one.explanation.interactions, group: one.explanation.group, because: one.explanation.because }));
      },
      audit: (dial, rerank, signal) => get("audit", { dial, rerank, k: K }, signal),
      item: (id, dial, rerank) => get(`items/${part(id)}`, { dial, rerank, k: K }),
    };
  };

  const source = service();

  // ------------------------------------------------------------ what is shown

  const state = { about: null, user: null, dial: 0, strength: NaN, before: [], after: [], audits: new Map() };

  const trouble = (error) => {
    if (error.name === "AbortError") return;
    if (error instanceof Refused) {
      $("token-form").hidden = false;
      $("main").hidden = true;
      $("token").focus();
      return;
    }
    $("trouble").textContent = `${error.message}.`;
    $("trouble").hidden = false;
  };
  const fine = () => { $("trouble").hidden = true; };

  const ofTheRun = () => (state.about.rerank ? "run" : "none");
  const baseline = () => state.about.choice?.before ?? { dial: state.about.dial.kappa, rerank: ofTheRun() };
  const ownStrength = (name) => name === "run" ? Number(/(?:^|,)strength=([^,]+)/.exec(state.about.rerank)?.[1] ?? NaN)
    : state.about.rerankers.find((one) => one.name === name)?.strength ?? NaN;
  const rerank = () => {
    const name = $("rerank").value || "none", { strength } = state;
    if (Number.isNaN(strength) || strength === ownStrength(name)) return name;
    return name === "run" ? state.about.rerank.replace(/(^|,)strength=[^,]+/, `$1strength=${strength}`) : `${name},strength=${strength}`;
  };
  const named = (wish) => (wish === "run" ? state.about.rerank : wish);
  const short = (wish) => [named(wish).split(",")[0], /(?:^|,)strength=([^,]+)/.exec(named(wish))?.[1]].filter(Boolean).join(" ");
  const made = (dial, wish) => `dial at ${signed(dial)}${wish === "none" ? "" : `, ${short(wish)}`}`;
  const isChoice = () => state.about.choice && state.dial === state.about.dial.kappa && rerank() === ofTheRun();

  const entry = (one, options = {}) => {
    const line = make("li", "entry");
    if (options.place) line.append(make("span", "place", `${options.place}.`));
    const button = make("button");
    button.type = "button";
    button.append(make("span", "name", shown(one.title ?? one.id)));
    if (one.title) button.append(" ", make("span", "id", shown(one.id)));
    if (one.because !== undefined) button.title = `like ${shown(one.because)}, from this customer's history`;
    button.addEventListener("click", () => openItem(one.id));
    line.append(button);
    const end = make("span", "end");
    if (one.group === "niche") end.append(make("span", "badge", "niche"), " ");
    end.append(`${whole(one.interactions ?? 0)}×`);
    if (options.move) end.append(" ", make("span", "move", options.move));
    line.append(end);
    if (options.className) line.classList.add(options.className);
    return line;
  };

  const drawLists = () => {
    const before = new Map(state.before.map((one) => [String(one.id), one.rank]));
    const after = new Map(state.after.map((one) => [String(one.id), one.rank]));
    $("before").replaceChildren(...state.before.map((one) =>
      entry(one, { place: one.rank, className: after.has(String(one.id)) ? "" : "gone" })));
    $("after").replaceChildren(...state.after.map((one) => {
      const was = before.get(String(one.id));
      const move = was === undefined ? "new" : was === one.rank ? "" : was > one.rank ? `▲ ${was - one.rank}` : `▼ ${one.rank - was}`;
      return entry(one, { place: one.rank, move, className: was === undefined ? "new" : "" });
    }));
    const entered = state.after.filter((one) => !before.has(String(one.id)));
    const left = state.before.filter((one) => !after.has(String(one.id)));
    const how = (dial, wish, list) => `${made(dial, wish)}; mean popularity ${whole(popularity(list) ?? 0)}`;
    const { choice } = state.about, base = baseline();
    $("before-title").textContent = choice ? `Before: ${shown(choice.before.name)}` : "Before";
    $("after-title").textContent = isChoice() ? `After: ${shown(choice.after)}` : "After";
    $("before-how").textContent = `${how(base.dial, base.rerank, state.before)}${choice ? "" : ", as stored in the run"}`;
    $("after-how").textContent = `${how(state.dial, rerank(), state.after)}; ${entered.length} new`;
    const part = (list, what) => `${list.length} ${what} (mean popularity ${whole(popularity(list) ?? 0)})`;
    $("changed").textContent = left.length
      ? `${part(left, `of ${state.before.length} items`)} are replaced by ${part(entered, "new")}.` : "The list has the same items.";
    $("said").textContent = `${entered.length} of ${state.after.length} items are new`;
  };

  // ------------------------------------------------------------ gauges

  const mean = (list, value) => (list.length ? list.reduce((sum, one) => sum + value(one), 0) / list.length : null);
  const nicheShare = (list) => mean(list, (one) => (one.group === "niche" ? 1 : 0));
  const popularity = (list) => mean(list, (one) => one.interactions);
  const fromCurve = (name, dial) => {
    const points = state.about.dial.curve;
    if (!points?.length) return null;
    const place = points.findIndex((one) => one.kappa >= dial);
    if (place === -1) return points.at(-1)[name];
    const high = points[place], low = points[Math.max(place - 1, 0)];
    if (high.kappa === low.kappa || high[name] === null || low[name] === null) return high[name];
    return low[name] + ((dial - low.kappa) / (high.kappa - low.kappa)) * (high[name] - low[name]);
  };
  const gauge = (name, was, now, most, words) => {
    const box = make("div", "gauge");
    box.append(make("div", "name", name));
    box.append(make("div", "value", now === null || now === undefined ? "–" : words(now)));
    box.append(make("div", "change", was === null || was === undefined ? "" : `before ${words(was)}`));
    if (now !== null && now !== undefined && most > 0) {
      const track = make("div", "track"), fill = make("div", "fill");
      fill.style.width = `${Math.min(100, (100 * now) / most)}%`;
      track.append(fill);
      if (was !== null && was !== undefined) {
        const mark = make("div", "was");
        mark.style.left = `${Math.min(100, (100 * was) / most)}%`;
        track.append(mark);
      }
      box.append(track);
    }
    return box;
  };
  const auditOf = (dial, wish) => state.audits.get(`${dial.toFixed(2)} ${named(wish)}`);
  const drawGauges = () => {
    const base = baseline();
    const was = auditOf(base.dial, base.rerank), now = auditOf(state.dial, rerank());
    const plain = named(rerank()) === "none" && named(base.rerank) === "none";
    const measured = isChoice() ? state.about.choice.accuracy : null;
    const counts = [popularity(state.before), popularity(state.after)].filter((one) => one !== null);
    const arps = [was, now].filter(Boolean).map((one) => one[`arp@${K}`]);
    const curve = state.about.dial.curve;
    const k = curve?.[0]?.k ?? K;
    const best = curve ? Math.max(...curve.map((one) => one.ndcg)) : 0;
    const drawn = [
      gauge("Niche items in this list", nicheShare(state.before), nicheShare(state.after), 1, percent),
      gauge("Mean popularity of this list", popularity(state.before), popularity(state.after), 1.15 * Math.max(1, ...counts), whole),
      gauge("Niche items, all customers", was?.[`aplt@${K}`], now?.[`aplt@${K}`], 1, percent),
      gauge("Mean popularity, all customers", was?.[`arp@${K}`], now?.[`arp@${K}`], 1.15 * Math.max(1, ...arps), whole),
      gauge("Coverage of the catalogue", was?.[`coverage@${K}`], now?.[`coverage@${K}`], 1, percent),
    ];
    const accuracy = measured ?? (plain && curve ? { metric: `ndcg@${k}`, values: [fromCurve("ndcg", base.dial), fromCurve("ndcg", state.dial)] } : null);
    if (accuracy) drawn.push(gauge(`Expected accuracy (${accuracy.metric.toUpperCase()})`, ...accuracy.values, 1.1 * Math.max(best, ...accuracy.values), (one) => one.toFixed(4)));
    $("gauges").replaceChildren(...drawn);
    $("note").textContent = measured ? "Expected accuracy was measured on all validation users."
      : !plain ? "Expected accuracy is available only for the dial and the selected point, not for other re-rankers or strengths."
      : curve ? "Expected accuracy is the dial's stored curve on validation." : "This run has no dial curve, so the expected accuracy is not available.";
  };

  // ------------------------------------------------------------ asking

  let asking = null, auditing = null, waiting = 0;
  const refresh = async () => {
    if (state.user === null) return;
    asking?.abort();
    const mine = (asking = new AbortController());
    try {
      const found = await source.list(state.user, state.dial, rerank(), mine.signal);
      if (mine.signal.aborted) return;
      state.after = found;
      fine();
      drawLists();
      drawGauges();
    } catch (error) { trouble(error); }
    clearTimeout(waiting);
    waiting = setTimeout(refreshAudit, 250);
    keepPlace();
  };
  const refreshAudit = async () => {
    auditing?.abort();
    const mine = (auditing = new AbortController());
    try {
      for (const { dial, rerank: wish } of [baseline(), { dial: state.dial, rerank: rerank() }]) {
        if (!auditOf(dial, wish)) state.audits.set(`${dial.toFixed(2)} ${named(wish)}`, await source.audit(dial, wish, mine.signal));
      }
      drawGauges();
    } catch (error) { trouble(error); }
  };
  const pick = async (id) => {
    try {
      const [user, before] = await Promise.all([source.user(id), source.list(id, baseline().dial, baseline().rerank)]);
      state.user = user.id;
      state.before = before;
      $("customer").value = shown(user.id);
      $("taken").replaceChildren(...user.taken.map((one) => entry(one)));
      const more = user.interactions > user.taken.length ? `, the ${user.taken.length} most popular of them` : "";
      $("taken-how").textContent = `${whole(user.interactions)} ${user.interactions === 1 ? "item" : "items"}${more}`;
      await refresh();
    } catch (error) { trouble(error); }
  };
  const keepPlace = () => {
    const place = new URLSearchParams({ customer: state.user, dial: state.dial });
    try { history.replaceState(null, "", `#${place}`); } catch { /* storage may be blocked */ }
  };

  // ------------------------------------------------------------ the dial and the re-ranker

  const setDial = (value) => {
    state.dial = Math.round(value * 100) / 100 + 0;
    $("dial").value = state.dial;
    $("dial-value").textContent = `κ ${signed(state.dial)}`;
    $("dial").setAttribute("aria-valuetext", `kappa ${signed(state.dial)}`);
  };
  $("dial").addEventListener("input", () => { setDial(Number($("dial").value)); refresh(); });
  const setStrength = (value) => {
    state.strength = value;
    $("strength-box").hidden = Number.isNaN(value);
    if (Number.isNaN(value)) return;
    $("strength").max = Math.max(1, value);
    $("strength").value = value;
    $("strength-value").textContent = value.toFixed(2);
  };
  const setRerank = (name) => {
    $("rerank").value = name;
    setStrength(ownStrength(name));
  };
  $("strength").addEventListener("input", () => { setStrength(Number($("strength").value)); refresh(); });
  $("dial-run").addEventListener("click", () => {
    setDial(state.about.dial.kappa);
    setRerank(ofTheRun());
    refresh();
  });
  $("rerank").addEventListener("change", () => { setRerank($("rerank").value); refresh(); });

  // ------------------------------------------------------------ search: a combobox, by pointer and by key

  let found = [], chosen = -1, searching = 0;
  const close = () => {
    $("choices").hidden = true;
    $("customer").setAttribute("aria-expanded", "false");
    $("customer").removeAttribute("aria-activedescendant");
    chosen = -1;
  };
  const take = (one) => {
    close();
    if (one.kind === "user") pick(one.id); else openItem(one.id);
  };
  const mark = (place) => {
    chosen = place;
    [...$("choices").children].forEach((line, number) => line.setAttribute("aria-selected", String(number === place)));
    $("choices").children[place]?.scrollIntoView({ block: "nearest" });
    if (place >= 0) $("customer").setAttribute("aria-activedescendant", `choice-${place}`);
  };
  const search = async () => {
    const words = $("customer").value.trim(), mine = ++searching;
    try {
      const [users, items] = await Promise.all([source.search("user", words), words ? source.search("item", words) : []]);
      if (mine !== searching) return;
      found = [...users.slice(0, 20).map((one) => ({ ...one, kind: "user" })), ...items.slice(0, 20).map((one) => ({ ...one, kind: "item" }))];
      const lines = found.map((one, place) => {
        const line = make("li", "", one.kind === "user" ? `customer ${shown(one.id)}` : `item ${shown(one.title ?? one.id)}`);
        line.id = `choice-${place}`;
        line.setAttribute("role", "option");
        line.setAttribute("aria-selected", "false");
        line.addEventListener("pointerdown", (event) => { event.preventDefault(); take(one); });
        return line;
      });
      if (!lines.length) {
        const none = make("li", "none", "no user or item matches");
        none.setAttribute("role", "option");
        none.setAttribute("aria-disabled", "true");
        none.setAttribute("aria-selected", "false");
        lines.push(none);
      }
      $("choices").replaceChildren(...lines);
      $("choices").hidden = false;
      $("customer").setAttribute("aria-expanded", "true");
      chosen = -1;
    } catch (error) { trouble(error); }
  };
  $("customer").addEventListener("input", search);
  $("customer").addEventListener("focus", () => { $("customer").select(); });
  $("customer").addEventListener("click", () => { if ($("choices").hidden) { $("customer").value = ""; search(); } });
  $("customer").addEventListener("blur", () => { close(); if (state.user !== null) $("customer").value = shown(state.user); });
  $("customer").addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if ($("choices").hidden) { $("customer").value = ""; search(); return; }
      if (found.length) mark((chosen + (event.key === "ArrowDown" ? 1 : found.length - (chosen < 0 ? 0 : 1))) % found.length);
    } else if (event.key === "Enter" && !$("choices").hidden && found.length) {
      event.preventDefault();
      take(found[Math.max(chosen, 0)]);
    } else if (event.key === "Escape") close();
  });

  // ------------------------------------------------------------ an item

  const openItem = async (id) => {
    try {
      const one = await source.item(id, state.dial, rerank());
      $("item-title").textContent = shown(one.title ?? one.id);
      $("item-facts").textContent = `${shown(one.id)} · ${whole(one.interactions)} training interactions · ${one.group}`;
      $("item-share").textContent = one.in_lists
        ? `In the lists of ${one.in_lists} of ${one.sampled_users} sampled customers, ${made(state.dial, rerank())}.`
        : `In none of the lists of ${one.sampled_users} sampled customers, ${made(state.dial, rerank())}.`;
      $("item-users").replaceChildren(...one.users.slice(0, 12).map((user) => {
        const button = make("button", "", shown(user));
        button.type = "button";
        button.addEventListener("click", () => { $("item").close(); pick(user); });
        return button;
      }));
      $("item-similar").replaceChildren(...one.similar.map((other) => {
        const line = entry(other);
        line.querySelector(".end").textContent = other.score === undefined ? "" : other.score.toFixed(2);
        return line;
      }));
      if (!one.similar.length) $("item-similar").replaceChildren(make("li", "soft", "none: no vectors to compare"));
      if (!$("item").open) $("item").showModal();
      $("item").scrollTop = 0;
    } catch (error) { trouble(error); }
  };
  $("item-close").addEventListener("click", () => $("item").close());
  $("item").addEventListener("click", (event) => { if (event.target === $("item")) $("item").close(); });

  // ------------------------------------------------------------ begin

  const begin = async () => {
    try {
      const about = (state.about = await source.about());
      $("token-form").hidden = true;
      fine();
      $("title").textContent = `${shown(about.run)}: ${about.choice ? "before and after" : "popularity dial"}`;
      $("why").hidden = !about.choice;
      $("why").firstElementChild.textContent = safe(about.choice?.sentences[0] ?? "");
      $("why").lastElementChild.replaceChildren(...(about.choice?.sentences.slice(1) ?? []).map((one) => make("li", "", safe(one))));
      document.querySelector(".lists").classList.toggle("choice", Boolean(about.choice));
      document.title = `dpaa live: ${shown(about.run)}`;
      $("facts").textContent = `${about.method} · ${whole(about.users)} customers · ${whole(about.items)} items, ${whole(about.popular_items)} of them popular`;
      const reach = Math.max(2, Math.abs(about.dial.kappa));
      $("dial").min = -reach; $("dial").max = reach; $("dial").step = 0.05;
      const others = about.rerankers.filter((one) => one.name !== "dial");
      $("rerank").replaceChildren(...[...(about.rerank ? ["run"] : []), "none", ...others.map((one) => one.name)].map((name) => {
        const option = make("option", "", name === "run" ? `the run's own (${about.rerank.split(",")[0]})` : name);
        option.value = name;
        return option;
      }));
      $("rerank-box").hidden = !others.length;
      setRerank(ofTheRun());
      $("main").hidden = false;
      const place = new URLSearchParams(location.hash.slice(1));
      const wanted = Number(place.get("dial") ?? about.dial.kappa);
      setDial(Number.isFinite(wanted) ? Math.max(-reach, Math.min(reach, wanted)) : about.dial.kappa);
      const first = place.get("customer") ?? (await source.search("user", ""))[0]?.id;
      if (first !== undefined) await pick(first);
    } catch (error) { trouble(error); }
  };
  $("token-form").addEventListener("submit", (event) => {
    event.preventDefault();
    keep(() => sessionStorage, "dpaa-token", $("token").value.trim());
    begin();
  });
  begin();
})();
