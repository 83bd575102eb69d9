"""A plot with logarithmic axes as SVG, without any library."""
import html
import math

colours = ["#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#8c564b", "#17becf", "#7f7f7f"]
width, height, left, right, top, bottom = 720, 420, 78, 216, 44, 52


def short(value):
    for unit, factor in (("M", 1e6), ("k", 1e3)):
        if value >= factor:
            return "%g%s" % (value / factor, unit)
    return "%g" % value


def decades(low, high):
    return [10.0 ** power for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]


def svg(title, x_label, y_label, series):
    """Draws series: [(name, [(x, y), ...])], all numbers above zero. Returns None if there is nothing to
    draw."""
    series = [(name, [(x, y) for x, y in points if x > 0 and y > 0]) for name, points in series]
    series = [(name, points) for name, points in series if points]
    if not series:
        return None
    xs = [x for _, points in series for x, _ in points]
    ticks = decades(min(y for _, points in series for _, y in points), max(y for _, points in series for _, y in points))
    if len(ticks) == 1:
        ticks.append(ticks[0] * 10)
    x_low, x_high = math.log10(min(xs)), math.log10(max(xs))
    y_low, y_high = math.log10(ticks[0]), math.log10(ticks[-1])
    at_x = lambda x: left + (math.log10(x) - x_low) / ((x_high - x_low) or 1) * (width - left - right)  # noqa: E731
    at_y = lambda y: height - bottom - (math.log10(y) - y_low) / ((y_high - y_low) or 1) * (height - top - bottom)  # noqa: E731
    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">' % (width, height),
           '<rect width="%d" height="%d" fill="#fff"/>' % (width, height),
           '<text x="%d" y="22" font-size="15">%s</text>' % (left, html.escape(title))]
    for y in ticks:
        out.append('<path d="M%d %.1fH%d" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%s</text>' % (left, at_y(y), width - right, left - 8, at_y(y) + 4, short(y)))
    for x in sorted(set(xs)):
        out.append('<path d="M%.1f %dV%d" stroke="#eee"/><text x="%.1f" y="%d" text-anchor="middle">%s</text>' % (at_x(x), top, height - bottom, at_x(x), height - bottom + 18, short(x)))
    out.append('<text x="%d" y="%d" text-anchor="middle">%s</text>' % ((left + width - right) / 2, height - 12, html.escape(x_label)))
    out.append('<text transform="translate(18 %d) rotate(-90)" text-anchor="middle">%s</text>' % ((top + height - bottom) / 2, html.escape(y_label)))
    for number, (name, points) in enumerate(series):
        colour = colours[number // 2 % len(colours)]
        dash = ' stroke-dasharray="5 4"' if number % 2 else ""
        line = " ".join("%.1f,%.1f" % (at_x(x), at_y(y)) for x, y in points)
        out.append('<polyline points="%s" fill="none" stroke="%s" stroke-width="2"%s/>' % (line, colour, dash))
        out += ['<circle cx="%.1f" cy="%.1f" r="3" fill="%s"><title>%s: %s</title></circle>' % (at_x(x), at_y(y), colour, short(x), "%.3g" % y) for x, y in points]
        legend = top + 10 + number * 20
        out.append('<path d="M%d %dh26" stroke="%s" stroke-width="2"%s/><text x="%d" y="%d">%s</text>' % (width - right + 14, legend, colour, dash, width - right + 46, legend + 4, html.escape(name)))
    return "\n".join(out + ["</svg>", ""])
