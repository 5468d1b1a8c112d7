// Sets the formulas of a page with KaTeX; pages without formulas do not load it.
// The folder katex holds KaTeX 0.19.1 (MIT licence) from npm, without the fonts and font rules that no page needs:
// Fraktur, script, sans serif and typewriter.
{
  const formulas = document.querySelectorAll(".arithmatex");
  if (formulas.length) {
    const folder = new URL("katex/", document.currentScript.src);
    const style = document.createElement("link");
    Object.assign(style, { rel: "stylesheet", href: new URL("katex.min.css", folder) });
    const script = document.createElement("script");
    script.src = new URL("katex.min.js", folder);
    script.onload = () => {
      for (const formula of formulas) {
        const text = formula.textContent.trim();
        katex.render(text.slice(2, -2), formula, { displayMode: text.startsWith("\\[") });
      }
    };
    document.head.append(style, script);
  }
}
