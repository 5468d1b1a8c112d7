// The form of the landing page composes the command; without scripts, the form shows every name to type.
document.querySelectorAll("form.chooser").forEach((form) => {
  const command = form.querySelector("code");
  form.addEventListener("change", () => {
    const names = new Map();
    for (const { value } of form.querySelectorAll("input:checked")) {
      for (const requirement of value.split(" ").filter(Boolean)) {
        const [name, extra] = requirement.split(/[[\]]/);
        const extras = names.get(name) ?? [];
        names.set(name, extra ? [...extras, extra] : extras);
      }
    }
    const requirements = [...names].map(([name, extras]) => (extras.length ? `"${name}[${extras}]"` : name));
    command.textContent = `pip install ${requirements.join(" ")}`;
  });
});
