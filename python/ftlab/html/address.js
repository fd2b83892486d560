// Keeps the reader's choices in the address of the page.

// The page's address holds the choices that differ from the defaults, so that a view can be passed on as a link.
function remember() {
  const words = new URLSearchParams();
  if (STUDY !== DATA.studies[0]) words.set("study", STUDY.name);
  for (const [name, first] of Object.entries({ ...DEFAULTS, theme: "", colour: STUDY.colour, section: "" })) {
    if (state[name] !== first) words.set(name, state[name]);
  }
  for (const name of others()) {
    if (state.at.get(name) !== DIMENSIONS.get(name).values[0]) words.set(`at.${name}`, state.at.get(name));
  }
  for (const value of state.hidden.get(state.colour) || []) words.append("hide", value);
  if ($("find").value) words.set("find", $("find").value);
  if ($("differing").checked) words.set("differing", "1");
  const hash = String(words);
  if (hash !== window.location.hash.slice(1)) window.history.replaceState(null, "", hash ? `#${hash}` : window.location.pathname);
}

function recall() {
  const hash = window.location.hash.slice(1);
  const words = new URLSearchParams(hash.includes("=") ? hash : `section=${hash}`);
  const study = DATA.studies.findIndex((one) => one.name === words.get("study"));
  setStudy(Math.max(0, study));
  $("study").value = String(Math.max(0, study));
  for (const [name, first] of Object.entries(DEFAULTS)) {
    const value = words.get(name) || first;
    const box = $(name);
    const known = name === "metric" ? METRICS[value] : name === "cause" ? CAUSES[value] : [...box.options].some((one) => one.value === value);
    state[name] = known ? value : first;
    if (name in REDRAWN) box.value = state[name];
  }
  state.theme = ["dark", "light"].includes(words.get("theme")) ? words.get("theme") : "";
  if (differing().includes(words.get("colour"))) state.colour = words.get("colour");
  state.at.clear();
  for (const name of others()) state.at.set(name, words.get(`at.${name}`));
  state.hidden.clear();
  state.hidden.set(state.colour, new Set(words.getAll("hide").filter((value) => DIMENSIONS.get(state.colour).values.includes(value))));
  state.section = words.get("section") in SECTIONS ? words.get("section") : "";
  $("find").value = words.get("find") || "";
  $("differing").checked = words.get("differing") === "1";
  metrics();
  causes();
}
